/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/annotate.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analyze/annotate_addresses.h"
#include "analyze/annotate_file.h"
#include "analyze/annotate_names.h"
#include "base/alloc.h"
#include "base/error.h"
#include "base/intern.h"
#include "symbol/texts.h"

struct weft__annotator {
	struct weft__annotate_opts opts;
	struct weft__symbolizer *sym;
	struct weft__intern known; /* modules of the symbolizer, by what they are; ids + 1 */
	struct weft__texts paths;
	char boot_id[64]; /* of the kernel that runs here */
	bool own_kallsyms;
	struct weft__annotated_module *modules; /* of the last segment */
	size_t cap_modules;
};

/* One run: a segment, its places, and what becomes of them. */
struct run {
	struct weft__annotator *annotator;
	struct weft_segment *seg;
	struct weft__addresses places;
	struct weft__symbol_place *asked;
	uint32_t *module_of;  /* by place: index into `modules` of the annotator */
	uint32_t *symbol_ids; /* by module: id of the symbolizer */
	struct weft__naming out;
	struct weft__defs more;
	struct weft__annotated *result;
	uint64_t done;
	int failed;
};

static void read_line(const char *path, char *text, size_t bytes)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, bytes - 1);

	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = 0;
	text[strcspn(text, "\n")] = 0;
}

int weft__annotator_open(struct weft__annotator **ret, const struct weft__annotate_opts *opts, struct weft_error *err)
{
	struct weft__annotator *annotator = weft__calloc(1, sizeof(*annotator));
	int r;

	if (!annotator)
		return weft__fail(err, -ENOMEM, "symbols: out of memory");
	if (opts)
		annotator->opts = *opts;
	annotator->own_kallsyms = !annotator->opts.symbols.kallsyms;
	read_line("/proc/sys/kernel/random/boot_id", annotator->boot_id, sizeof(annotator->boot_id));
	r = weft__symbolizer_open(&annotator->sym, &annotator->opts.symbols, err);
	memset(&annotator->opts.symbols, 0, sizeof(annotator->opts.symbols)); /* the texts are the caller's */
	if (r) {
		weft__annotator_close(annotator);
		return r;
	}
	*ret = annotator;
	return 0;
}

void weft__annotator_close(struct weft__annotator *annotator)
{
	if (!annotator)
		return;
	weft__symbolizer_close(annotator->sym);
	weft__intern_fini(&annotator->known);
	weft__texts_fini(&annotator->paths);
	weft__free(annotator->modules);
	weft__free(annotator);
}

/* Who ran the process; where the segment does not say it, whose it is. */
static uint32_t user_of(const struct weft_segment *seg)
{
	const char *uid = weft_segment_fact(seg, "process.uid");
	struct stat st;

	if (uid)
		return (uint32_t)strtoul(uid, NULL, 10);
	return seg->fd >= 0 && fstat(seg->fd, &st) == 0 ? st.st_uid : geteuid();
}

/* The module as the symbolizer wants it. Files are put at address 0, wherever they were: processes that map the same
 * one at different addresses then share its answers. */
static void describe(const struct run *run, const struct weft_module *module, struct weft__symbol_module *to)
{
	const char *pid = weft_segment_fact(run->seg, "process.pid");

	*to = (struct weft__symbol_module){.path = "", .end = UINT64_MAX};
	if (module && module->kind != WEFT_MODULE_CODE && module->kind != WEFT_MODULE_KERNEL) {
		to->path = module->kind == WEFT_MODULE_VDSO ? "[vdso]" : module->path;
		to->end = module->end - module->start;
		to->offset = module->offset;
	}
	if (module && module->kind == WEFT_MODULE_KERNEL)
		to->path = "[kernel]";
	else if (!to->path[0])
		to->pid = pid ? (uint32_t)strtoul(pid, NULL, 10) : 0;
	to->uid = user_of(run->seg);
	if (module && module->build_id_n) {
		to->build_id = module->build_id;
		to->build_id_n = module->build_id_n;
	}
}

static int symbol_id(struct weft__annotator *annotator, const struct weft__symbol_module *module, uint32_t *ret)
{
	struct weft__buf key = {0};
	uint32_t id;
	int r = 0;

	weft__buf_varint(&key, module->pid);
	weft__buf_varint(&key, module->uid);
	weft__buf_varint(&key, module->end);
	weft__buf_varint(&key, module->offset);
	weft__buf_varint(&key, module->build_id_n);
	weft__buf_put(&key, module->build_id, module->build_id_n);
	weft__buf_text(&key, module->path);
	id = key.oom ? 0 : weft__intern_get(&annotator->known, key.bytes, key.n);
	if (key.oom) {
		r = -ENOMEM;
	} else if (id) {
		*ret = id - 1;
	} else {
		r = weft__symbolizer_add(annotator->sym, module, ret);
		if (!r)
			r = weft__intern_add(&annotator->known, key.bytes, key.n, *ret + 1);
	}
	weft__buf_free(&key);
	return r;
}

/* Kernel addresses mean something only in the boot that they were taken in: each one puts the kernel elsewhere. */
static bool kernel_moved(const struct run *run)
{
	const char *boot_id = weft_segment_fact(run->seg, "host.boot_id");

	return run->annotator->own_kallsyms && boot_id && run->annotator->boot_id[0] &&
	       strcmp(boot_id, run->annotator->boot_id) != 0;
}

/* An entry for each module of the segment and one, the last, for code in none. */
static int list_modules(struct run *run)
{
	struct weft__annotator *annotator = run->annotator;
	size_t n, i;
	const struct weft_module *modules = weft_segment_modules(run->seg, &n);

	if (annotator->cap_modules < n + 1) {
		struct weft__annotated_module *list =
			weft__realloc(annotator->modules, (n + 1) * sizeof(*annotator->modules));

		if (!list)
			return -ENOMEM;
		annotator->modules = list;
		annotator->cap_modules = n + 1;
	}
	run->symbol_ids = weft__calloc(n + 1, sizeof(*run->symbol_ids));
	if (!run->symbol_ids)
		return -ENOMEM;
	for (i = 0; i <= n; i++) {
		struct weft__symbol_module module;
		int r;

		describe(run, i < n ? &modules[i] : NULL, &module);
		r = symbol_id(annotator, &module, &run->symbol_ids[i]);
		if (r)
			return r;
		module.path = weft__texts_add(&annotator->paths, module.path);
		if (!module.path)
			return -ENOMEM;
		annotator->modules[i] = (struct weft__annotated_module){
			.path = module.path, .kind = i < n ? modules[i].kind : 0, .why = ""};
	}
	run->result->modules = annotator->modules;
	run->result->n_modules = n + 1;
	return 0;
}

static uint32_t module_index(const struct run *run, const struct weft_module *modules, uint32_t id)
{
	const struct weft_module *module = id ? weft_segment_module(run->seg, id) : NULL;

	return module ? (uint32_t)(module - modules) : (uint32_t)run->result->n_modules - 1;
}

/* What the symbolizer is asked. A place in no module that the segment knows is an address. */
static int ask(struct run *run)
{
	size_t n, i;
	const struct weft_module *modules = weft_segment_modules(run->seg, &n);

	run->asked = weft__calloc(run->places.n + 1, sizeof(*run->asked));
	run->module_of = weft__calloc(run->places.n + 1, sizeof(*run->module_of));
	if (!run->asked || !run->module_of)
		return -ENOMEM;
	for (i = 0; i < run->places.n; i++) {
		const struct weft__code_address *place = &run->places.at[i];
		uint32_t index = module_index(run, modules, place->module);

		run->module_of[i] = index;
		run->asked[i] = (struct weft__symbol_place){run->symbol_ids[index], place->offset, place->time_ns};
		if (index < n && modules[index].kind == WEFT_MODULE_CODE)
			run->asked[i].ip += modules[index].start;
		run->annotator->modules[index].places++;
	}
	return 0;
}

static bool same_names(const struct weft_symbol_def *had, const struct weft__symbol_frames *frames)
{
	uint32_t i;

	if (!had || had->n_frames != frames->n)
		return false;
	for (i = 0; i < frames->n; i++) {
		const struct weft_symbol_frame *a = &had->frames[i];
		const struct weft__symbol *b = &frames->at[i];

		if (a->line != b->line || a->inlined != b->inlined || strcmp(a->function, b->function) != 0 ||
		    strcmp(a->file, b->file ? b->file : "") != 0)
			return false;
	}
	return true;
}

static void count_named(struct run *run, size_t index, uint32_t n_frames, bool lined)
{
	struct weft__annotated_module *module = &run->annotator->modules[run->module_of[index]];

	module->named++;
	module->lined += lined;
	run->result->named++;
	run->result->lined += lined;
	run->result->frames += n_frames;
}

static void answered(size_t index, const struct weft__symbol_frames *frames, void *data)
{
	struct run *run = data;
	const struct weft__code_address *place = &run->places.at[index];
	const struct weft_symbol_def *had = weft_segment_symbol(run->seg, place->module, place->offset);
	const struct weft__annotate_opts *opts = &run->annotator->opts;
	int added = 0;

	if (frames->n && frames->at[0].raw && !same_names(had, frames) && run->failed >= 0) {
		added = weft__naming_add(&run->out, place->module, place->offset, frames);
		run->failed = added < 0 ? added : 0;
		run->result->full |= !added;
	}
	if (added > 0) {
		run->result->added++;
		count_named(run, index, frames->n, frames->at[0].line > 0);
	} else if (had) {
		count_named(run, index, had->n_frames, had->n_frames && had->frames[0].line > 0);
	}
	if (opts->progress)
		opts->progress(opts->data, ++run->done, run->places.n);
}

/* Those that have names are not asked for, and counted as they are. */
static size_t leave_out_named(struct run *run)
{
	size_t i, n = 0;

	for (i = 0; i < run->places.n; i++) {
		const struct weft__code_address *place = &run->places.at[i];
		const struct weft_symbol_def *had = NULL;

		if (!run->annotator->opts.again)
			had = weft_segment_symbol(run->seg, place->module, place->offset);
		if (had && had->n_frames) {
			count_named(run, i, had->n_frames, had->frames[0].line > 0);
			continue;
		}
		run->places.at[n] = *place;
		run->asked[n] = run->asked[i];
		run->module_of[n++] = run->module_of[i];
	}
	return n;
}

/* Kernel places of another boot go to the end, where nobody asks. */
static size_t leave_out_kernel(struct run *run, size_t n)
{
	size_t i, kept = 0;

	if (!kernel_moved(run))
		return n;
	for (i = 0; i < n; i++) {
		struct weft__annotated_module *module = &run->annotator->modules[run->module_of[i]];

		if (module->kind == WEFT_MODULE_KERNEL) {
			module->why = "recorded in another boot or on another machine, where the kernel lay elsewhere: "
				      "give its /proc/kallsyms, saved then, with --kallsyms";
			continue;
		}
		run->places.at[kept] = run->places.at[i];
		run->asked[kept] = run->asked[i];
		run->module_of[kept++] = run->module_of[i];
	}
	return kept;
}

static int resolve(struct run *run)
{
	struct weft__annotator *annotator = run->annotator;
	size_t i, n;
	int r;

	n = leave_out_kernel(run, leave_out_named(run));
	run->places.n = n;
	weft__symbolizer_refresh(annotator->sym);
	r = weft__symbolizer_resolve_all(annotator->sym, run->asked, n, answered, run);
	for (i = 0; i < run->result->n_modules; i++)
		if (!annotator->modules[i].why[0])
			annotator->modules[i].why = weft__symbolizer_why(annotator->sym, run->symbol_ids[i]);
	return r ? r : run->failed;
}

static int write_out(struct run *run, const char *path, const char *out, struct weft_error *err)
{
	struct weft__copy copy;
	char real[PATH_MAX];
	size_t i;
	int r;

	/* A link goes on pointing to the segment. */
	if (!out && !realpath(path, real))
		return weft__fail(err, -errno, "%s: %s", path, weft_strerror(-errno));
	r = weft__copy_begin(&copy, run->seg, out ? out : real, err);

	for (i = 0; !r && i < run->out.n_blocks; i++)
		r = weft__copy_defs(&copy, &run->out.blocks[i], err);
	if (!r && run->more.n)
		r = weft__copy_defs(&copy, &run->more, err);
	if (!r)
		r = weft__copy_end(&copy, !out, err);
	weft__copy_fini(&copy);
	run->result->written = !r;
	return r;
}

static int annotate(struct run *run, const char *path, struct weft_error *err)
{
	struct weft__annotated *result = run->result;
	size_t n_stacks;
	int r = weft__addresses_collect(&run->places, run->seg);

	weft_segment_stacks(run->seg, &n_stacks);
	result->stacks = n_stacks;
	result->places = run->places.n;
	if (!r)
		r = list_modules(run);
	if (!r)
		r = ask(run);
	if (!r)
		r = weft__naming_init(&run->out, run->seg);
	if (!r)
		r = resolve(run);
	if (!r && run->annotator->opts.more)
		r = run->annotator->opts.more(run->annotator->opts.more_data, run->seg, &run->more);
	return r ? weft__fail(err, r, "%s: %s", path, weft_strerror(r)) : 0;
}

static void finish(struct run *run)
{
	weft__free(run->asked);
	weft__free(run->module_of);
	weft__free(run->symbol_ids);
	weft__addresses_fini(&run->places);
	weft__naming_fini(&run->out);
	weft__defs_fini(&run->more);
	weft_segment_close(run->seg);
}

int weft__annotator_run(struct weft__annotator *annotator, const char *path, const char *out,
			struct weft__annotated *ret, struct weft_error *err)
{
	struct weft__annotated result = {0};
	struct run run = {.annotator = annotator, .result = &result};
	struct weft_damage damage;
	int r = weft_segment_open(&run.seg, path, err);

	if (!r)
		r = weft__copy_allowed(run.seg, path, !out, err);
	if (!r)
		r = annotate(&run, path, err);
	if (!r) {
		damage = weft_segment_damage(run.seg);
		result.damaged_places = damage.places;
		snprintf(result.damage, sizeof(result.damage), "%s", damage.text);
		if (out || run.out.n_blocks || run.more.n)
			r = write_out(&run, path, out, err);
	}
	finish(&run);
	if (!r)
		*ret = result;
	return r;
}
