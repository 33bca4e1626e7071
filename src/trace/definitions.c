/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of what a recording defines: itself, threads, workers, locations, losses, code. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/label.h"
#include "analyze/loss.h"
#include "base/alloc.h"
#include "trace/inside.h"
#include "trace/summary.h"

bool weft__needs_functions(const struct weft__scan *t)
{
	size_t i;

	if (t->opts.table == WEFT__TABLE_FRAME)
		return true;
	if (weft__is_summary(t->opts.table)) /* knows only at the end which ones */
		return false;
	for (i = 0; i < t->table->n_columns; i++)
		if (weft__wanted(t, i) && strstr(t->table->columns[i].name, "function"))
			return true;
	return false;
}

bool weft__needs_objects(const struct weft__scan *t)
{
	return (t->opts.table == WEFT__TABLE_WAIT && weft__wanted(t, WEFT__COL_WAIT_OBJECT_NAME)) ||
	       (t->opts.table == WEFT__TABLE_SLICE && weft__wanted(t, WEFT__COL_SLICE_OBJECT_NAME));
}

static void set_hex(struct weft__scan *t, struct weft__row *row, size_t column, const uint8_t *bytes, size_t n)
{
	char text[2 * WEFT_BUILD_ID_MAX + 1] = "";
	size_t i;

	for (i = 0; i < n && i < WEFT_BUILD_ID_MAX; i++)
		snprintf(text + 2 * i, 3, "%02x", bytes[i]);
	if (n && weft__wanted(t, column))
		weft__set_text(row, column, weft__texts_add(&t->set->texts, text));
}

static int give_recording(struct weft__scan *t)
{
	const struct weft__recording *rec = t->rec;
	const char *pid = weft__names_fact(&rec->names, "process.pid");
	struct weft__row *row = weft__row_new(t);

	if (!row)
		return -ENOMEM;
	weft__set_int(row, WEFT__COL_RECORDING_ID, (int64_t)t->number);
	set_hex(t, row, WEFT__COL_RECORDING_UUID, rec->id, sizeof(rec->id));
	if (rec->dump)
		weft__set_int(row, WEFT__COL_RECORDING_DUMP, (int64_t)rec->dump);
	if (pid && pid[0] >= '0' && pid[0] <= '9')
		weft__set_int(row, WEFT__COL_RECORDING_PID, strtoll(pid, NULL, 10));
	weft__set_text(row, WEFT__COL_RECORDING_COMMAND, weft__names_fact(&rec->names, "process.cmdline"));
	weft__set_text(row, WEFT__COL_RECORDING_SERVICE, weft__names_fact(&rec->names, "service.name"));
	weft__set_text(row, WEFT__COL_RECORDING_HOST, weft__names_fact(&rec->names, "host.name"));
	if (rec->start_real_ns)
		weft__set_int(row, WEFT__COL_RECORDING_START_UNIX_NS, (int64_t)rec->start_real_ns);
	weft__set_int(row, WEFT__COL_RECORDING_SPAN_NS, weft__time(t, rec->last_ns));
	weft__set_int(row, WEFT__COL_RECORDING_EVENTS, (int64_t)rec->n_events);
	weft__set_int(row, WEFT__COL_RECORDING_SEGMENTS, (int64_t)rec->n_files);
	weft__set_int(row, WEFT__COL_RECORDING_MISSING_SEGMENTS, (int64_t)rec->missing_segments);
	weft__set_text(row, WEFT__COL_RECORDING_POLL_MODE, weft__names_fact(&rec->names, "poll.mode"));
	weft__row_give(t, row);
	return 0;
}

static int give_thread(struct weft__scan *t, const struct weft_thread *thread)
{
	struct weft__row *row = weft__row_new(t);

	if (!row)
		return -ENOMEM;
	weft__set_int(row, WEFT__COL_THREAD_ID, weft__id(t, thread->id));
	weft__set_int(row, WEFT__COL_THREAD_RECORDING, (int64_t)t->number);
	weft__set_int(row, WEFT__COL_THREAD_TID, thread->tid);
	weft__set_text(row, WEFT__COL_THREAD_NAME, thread->name[0] ? thread->name : "thread");
	if (thread->worker != WEFT_WORKER_NONE)
		weft__set_int(row, WEFT__COL_THREAD_WORKER_ID, weft__id(t, thread->worker));
	if (weft__recording_since(t->rec, thread->first_ns))
		weft__set_int(row, WEFT__COL_THREAD_FIRST_NS, weft__time(t, thread->first_ns));
	weft__row_give(t, row);
	return 0;
}

static int give_worker(struct weft__scan *t, const struct weft_worker *worker)
{
	const struct weft_runtime_def *runtime = weft__names_runtime(&t->rec->names, worker->runtime);
	struct weft__row *row = weft__row_new(t);

	if (!row || weft__fill_label(t, row, WEFT__COL_WORKER_NAME, worker->id, 0) < 0)
		return -ENOMEM;
	weft__set_int(row, WEFT__COL_WORKER_ID, weft__id(t, worker->id));
	weft__set_int(row, WEFT__COL_WORKER_RECORDING, (int64_t)t->number);
	weft__set_text(row, WEFT__COL_WORKER_RUNTIME, runtime ? runtime->name : NULL);
	weft__set_int(row, WEFT__COL_WORKER_INDEX, worker->index);
	weft__row_give(t, row);
	return 0;
}

static int give_location(struct weft__scan *t, const struct weft_location_def *location)
{
	struct weft__row *row = weft__row_new(t);

	if (!row)
		return -ENOMEM;
	weft__set_int(row, WEFT__COL_LOCATION_ID, weft__id(t, location->id));
	weft__set_int(row, WEFT__COL_LOCATION_RECORDING, (int64_t)t->number);
	weft__set_text(row, WEFT__COL_LOCATION_NAME, location->name);
	weft__set_text(row, WEFT__COL_LOCATION_FILE, location->file);
	if (location->line)
		weft__set_int(row, WEFT__COL_LOCATION_LINE, location->line);
	weft__row_give(t, row);
	return 0;
}

static int give_loss(struct weft__scan *t, const struct weft_loss *loss)
{
	const struct weft_thread *thread = weft__names_thread(&t->rec->names, loss->thread);
	struct weft__row *row = weft__row_new(t);

	if (!row)
		return -ENOMEM;
	weft__set_int(row, WEFT__COL_LOSS_RECORDING, (int64_t)t->number);
	weft__set_text(row, WEFT__COL_LOSS_REASON, weft__label_reason(loss->reason));
	if (loss->thread)
		weft__set_int(row, WEFT__COL_LOSS_THREAD_ID, weft__id(t, loss->thread));
	weft__set_text(row, WEFT__COL_LOSS_THREAD, thread ? thread->name : NULL);
	if (weft__loss_counted(loss->reason))
		weft__set_int(row, WEFT__COL_LOSS_COUNT, (int64_t)loss->count);
	weft__set_int(row, WEFT__COL_LOSS_FROM_NS, weft__time(t, loss->from_ns));
	weft__set_int(row, WEFT__COL_LOSS_TO_NS,
		      weft__time(t, loss->to_ns < loss->from_ns ? loss->from_ns : loss->to_ns));
	weft__row_give(t, row);
	return 0;
}

static int give_module(struct weft__scan *t, const struct weft_module *module)
{
	static const char *const kinds[] = {
		[WEFT_MODULE_FILE] = "file", [WEFT_MODULE_VDSO] = "vdso",   [WEFT_MODULE_KERNEL] = "kernel",
		[WEFT_MODULE_CODE] = "code", [WEFT_MODULE_NAMED] = "named",
	};
	struct weft__row *row = weft__row_new(t);

	if (!row)
		return -ENOMEM;
	weft__set_int(row, WEFT__COL_MODULE_ID, weft__id(t, module->id));
	weft__set_int(row, WEFT__COL_MODULE_RECORDING, (int64_t)t->number);
	weft__set_text(row, WEFT__COL_MODULE_KIND,
		       module->kind < sizeof(kinds) / sizeof(kinds[0]) && kinds[module->kind] ? kinds[module->kind]
											      : "other");
	weft__set_text(row, WEFT__COL_MODULE_PATH, module->path);
	set_hex(t, row, WEFT__COL_MODULE_BUILD_ID, module->build_id, module->build_id_n);
	weft__set_int(row, WEFT__COL_MODULE_START, (int64_t)module->start);
	weft__set_int(row, WEFT__COL_MODULE_END, (int64_t)module->end);
	weft__row_give(t, row);
	return 0;
}

/* Outermost first. */
static int join_functions(struct weft__scan *t, struct weft__row *row, uint32_t stack)
{
	const struct weft__frames *frames = &t->rec->frames;
	size_t bytes = 0, i;
	FILE *out;

	if (weft__frames_lines(frames, stack, 0, &t->lines) < 0)
		return -ENOMEM;
	out = open_memstream(&row->own, &bytes);
	if (!out)
		return -ENOMEM;
	for (i = t->lines.n; i-- > 0;)
		fprintf(out, "%s%s", frames->functions[t->lines.at[i].function].name, i ? ";" : "");
	if (fclose(out) != 0) {
		free(row->own);
		return -ENOMEM;
	}
	weft__set_text(row, WEFT__COL_STACK_FUNCTIONS, row->own);
	return 0;
}

static int give_stack(struct weft__scan *t, const struct weft__code_stack *stack)
{
	struct weft__row *row = weft__row_new(t);

	if (!row || (weft__wanted(t, WEFT__COL_STACK_FUNCTIONS) && join_functions(t, row, stack->id) < 0))
		return -ENOMEM;
	weft__set_int(row, WEFT__COL_STACK_ID, weft__id(t, stack->id));
	weft__set_int(row, WEFT__COL_STACK_RECORDING, (int64_t)t->number);
	weft__set_int(row, WEFT__COL_STACK_COMPLETE, (stack->flags & WEFT_STACK_COMPLETE) != 0);
	weft__set_int(row, WEFT__COL_STACK_CUT, (stack->flags & WEFT_STACK_CUT) != 0);
	weft__set_int(row, WEFT__COL_STACK_KERNEL, (stack->flags & WEFT_STACK_KERNEL) != 0);
	weft__set_int(row, WEFT__COL_STACK_FRAMES, stack->n);
	weft__row_give(t, row);
	return 0;
}

static int give_frame(struct weft__scan *t, uint32_t stack, size_t depth)
{
	const struct weft__line *line = &t->lines.at[depth];
	const struct weft__function *function = &t->rec->frames.functions[line->function];
	struct weft__row *row = weft__row_new(t);

	if (!row)
		return -ENOMEM;
	weft__set_int(row, WEFT__COL_FRAME_STACK_ID, weft__id(t, stack));
	weft__set_int(row, WEFT__COL_FRAME_RECORDING, (int64_t)t->number);
	weft__set_int(row, WEFT__COL_FRAME_DEPTH, (int64_t)depth);
	weft__set_text(row, WEFT__COL_FRAME_FUNCTION, function->name);
	weft__set_int(row, WEFT__COL_FRAME_NAMED, function->known);
	weft__set_text(row, WEFT__COL_FRAME_MODULE, function->module);
	weft__set_text(row, WEFT__COL_FRAME_FILE, line->file);
	if (line->line)
		weft__set_int(row, WEFT__COL_FRAME_LINE, line->line);
	weft__set_int(row, WEFT__COL_FRAME_INLINED, line->inlined);
	weft__row_give(t, row);
	return 0;
}

static int give_frames(struct weft__scan *t, const struct weft__code_stack *stack)
{
	size_t i;
	int rc = weft__frames_lines(&t->rec->frames, stack->id, 0, &t->lines);

	for (i = 0; i < t->lines.n && rc == 0; i++)
		rc = give_frame(t, stack->id, i);
	return rc;
}

/* The stacks or frames with one id, when a filter asks for that. */
static int give_code(struct weft__scan *t, int (*give)(struct weft__scan *t, const struct weft__code_stack *stack))
{
	const struct weft__frames *frames = &t->rec->frames;
	const struct weft__code_stack *stack;
	size_t i;
	int rc = 0;

	for (i = 0; i < t->opts.n_filters; i++)
		if (t->opts.filters[i].column == 0 && t->opts.filters[i].op == WEFT__EQ) {
			stack = (uint64_t)t->opts.filters[i].value.i >> 44 == t->number
					? weft__frames_stack(frames, (uint32_t)t->opts.filters[i].value.i)
					: NULL;
			return stack ? give(t, stack) : 0;
		}
	for (i = 0; i < frames->n_stacks && rc == 0; i++)
		rc = give(t, &frames->stacks[i]);
	return rc;
}

#define EACH(array, count, give)                                                                                       \
	for (i = 0; i < (count) && rc == 0; i++)                                                                       \
		rc = give(t, &(array)[i]);                                                                             \
	return rc

int weft__definitions(struct weft__scan *t)
{
	const struct weft__names *names = &t->rec->names;
	size_t i;
	int rc = 0;

	switch (t->opts.table) {
	case WEFT__TABLE_RECORDING:
		return give_recording(t);
	case WEFT__TABLE_LOSS:
		EACH(names->losses, names->n_losses, give_loss);
	case WEFT__TABLE_THREAD:
		EACH((const struct weft_thread *)names->threads.rows, names->threads.n, give_thread);
	case WEFT__TABLE_WORKER:
		EACH((const struct weft_worker *)names->workers.rows, names->workers.n, give_worker);
	case WEFT__TABLE_LOCATION:
		EACH((const struct weft_location_def *)names->locations.rows, names->locations.n, give_location);
	case WEFT__TABLE_MODULE:
		for (i = 1; i < t->rec->frames.n_modules && rc == 0; i++)
			if (t->rec->frames.modules[i].def.kind)
				rc = give_module(t, &t->rec->frames.modules[i].def);
		return rc;
	case WEFT__TABLE_STACK:
		return give_code(t, give_stack);
	case WEFT__TABLE_FRAME:
		return give_code(t, give_frames);
	default:
		return 0;
	}
}
