/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of bench/rows.py that are not commands. `repeat IN.weft DIR N [TIMES]` writes IN's events again and again,
 * until there are N, as segments of one recording, each with all of them TIMES times. `decode DIR` reads all events in
 * order of time: their number and the CPU time. `rows DIR TABLE` makes all rows of a table: their number, that of
 * events, the CPU time, and memory in KiB. */
#include <fcntl.h>

#include "base/alloc.h"
#include "bench.h"
#include "segment/batch.h"
#include "segment/defs.h"
#include "segment/format.h"
#include "segment/writer.h"
#include "trace/trace.h"

#define BLOCK_OF 16384

struct events {
	struct weft_event_view *at;
	size_t n;
};

static struct events read_all(struct weft_segment *seg)
{
	size_t cap = weft_segment_info(seg)->n_events + 1;
	struct events all = {malloc(cap * sizeof(*all.at)), 0};
	struct weft_cursor *cursor;

	if (!all.at || weft_cursor_open(&cursor, seg, WEFT_ORDER_TIME, 0, UINT64_MAX, NULL) < 0)
		abort();
	while (all.n < cap && weft_cursor_next(cursor, &all.at[all.n]) > 0)
		all.n++;
	weft_cursor_close(cursor);
	return all;
}

static void define(struct weft__defs *defs, const struct weft_segment *seg)
{
	const struct weft_kind_def *kinds;
	size_t i, n;

#define EACH(NOUN, type, call)                                                                                         \
	do {                                                                                                           \
		const type *at = weft_segment_##NOUN(seg, &n);                                                         \
		for (i = 0; i < n; i++)                                                                                \
			call;                                                                                          \
	} while (0)
	weft__defs_builtin_kinds(defs);
	EACH(threads, struct weft_thread, weft__defs_thread(defs, &at[i]));
	EACH(workers, struct weft_worker, weft__defs_worker(defs, at[i].id, at[i].runtime, at[i].index));
	EACH(runtimes, struct weft_runtime_def, weft__defs_runtime(defs, at[i].id, at[i].name));
	EACH(locations, struct weft_location_def,
	     weft__defs_location(defs, at[i].id, at[i].line, at[i].name, at[i].file));
	EACH(strings, struct weft_string_def, weft__defs_string(defs, at[i].id, at[i].text));
	EACH(facts, struct weft_fact, weft__defs_fact(defs, at[i].key, at[i].value));
#undef EACH
	kinds = weft_segment_kinds(seg, &n);
	for (i = 0; i < n; i++)
		if (kinds[i].id >= WEFT_KIND_USER)
			weft__defs_kind(defs, kinds[i].id, kinds[i].name, kinds[i].fields, kinds[i].n_fields);
}

static int by_thread(const void *left, const void *right)
{
	const struct weft_event_view *a = left, *b = right;

	if (a->thread != b->thread)
		return a->thread < b->thread ? -1 : 1;
	return a < b ? -1 : a > b;
}

static void write_block(struct weft__writer *w, struct weft__encoder *enc, struct weft_event_view *at, size_t n,
			uint64_t later_ns)
{
	struct weft__buf payload = {0};
	struct weft__batch batch;
	uint64_t first_ns, last_ns;
	size_t i;

	qsort(at, n, sizeof(*at), by_thread);
	weft__batch_init(&batch, 8);
	for (i = 0; i < n; i++) {
		if ((i == 0 || at[i].thread != at[i - 1].thread) &&
		    weft__batch_begin(&batch, at[i].thread, 0, 0, 0) < 0)
			abort();
		if (weft__batch_add(&batch, at[i].time_ns + later_ns, at[i].kind, at[i].fields, at[i].n_fields) < 0)
			abort();
		if (i + 1 == n || at[i].thread != at[i + 1].thread)
			weft__batch_end(&batch, 0);
	}
	if (weft__encoder_events(enc, &batch, &payload, &first_ns, &last_ns) < 0 ||
	    weft__writer_block(w, BLOCK_EVENTS, 0, (uint32_t)n, first_ns, last_ns, &payload) < 0)
		abort();
	weft__buf_free(&payload);
	weft__batch_fini(&batch);
}

static void write_events(struct weft__writer *w, struct weft__encoder *enc, const struct events *all, uint64_t later_ns)
{
	struct weft_event_view *copy = malloc(BLOCK_OF * sizeof(*copy));
	size_t i, n;

	if (!copy)
		abort();
	for (i = 0; i < all->n; i += n) {
		n = all->n - i < BLOCK_OF ? all->n - i : BLOCK_OF;
		memcpy(copy, all->at + i, n * sizeof(*copy));
		write_block(w, enc, copy, n, later_ns);
	}
	free(copy);
}

/* A segment of the events `times` times, `span_ns` apart. */
static void write_segment(const struct weft_segment *seg, const struct events *all, const char *dir, uint64_t number,
			  uint64_t span_ns, uint64_t times)
{
	uint64_t later_ns = number * times * span_ns, k;
	const struct weft_segment_info *info = weft_segment_info(seg);
	struct weft__segment_head head = {
		8, {0}, number, info->start_mono_ns + later_ns, info->start_real_ns + later_ns};
	struct weft__encoder *enc = NULL;
	struct weft__writer w = {0};
	struct weft__defs defs = {0};
	char path[512];
	int fd;

	snprintf(path, sizeof(path), "%s/repeated-%06u.weft", dir, (unsigned)number);
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	memcpy(head.recording, info->recording, sizeof(head.recording));
	define(&defs, seg);
	if (fd < 0 || weft__encoder_open(&enc, 1) < 0 || weft__writer_begin(&w, fd, &head) < 0 ||
	    weft__writer_defs(&w, enc, &defs) < 0)
		abort();
	for (k = 0; k < times; k++)
		write_events(&w, enc, all, later_ns + k * span_ns);
	if (weft__writer_seal(&w, 0) < 0)
		abort();
	weft__defs_fini(&defs);
	weft__writer_fini(&w);
	weft__encoder_close(enc);
	close(fd);
}

static void repeat(const char *in, const char *dir, uint64_t wanted, uint64_t times)
{
	struct weft_segment *seg;
	struct weft_error err;
	struct events all;
	uint64_t written = 0, number = 0, span_ns;

	bench_check(weft_segment_open(&seg, in, &err), &err);
	all = read_all(seg);
	if (all.n == 0)
		abort();
	span_ns = all.at[all.n - 1].time_ns - all.at[0].time_ns + 1000000;
	span_ns -= span_ns % 8;
	for (; written < wanted; written += times * all.n, number++)
		write_segment(seg, &all, dir, number, span_ns, times);
	printf("%llu\n", (unsigned long long)written);
	free(all.at);
	weft_segment_close(seg);
}

static void load(struct weft__recordings *list, const char *dir)
{
	struct weft_error err = {0};

	bench_check(weft__recordings_add(list, dir, &err), &err);
	weft__recordings_settle(list);
	if (list->n != 1)
		abort();
}

static int count(void *data, const struct weft__event *ev)
{
	*(uint64_t *)data += ev->kind != 0;
	return 0;
}

static void decode(const char *dir)
{
	struct weft__recordings list = {0};
	uint64_t n = 0, begin_ns;
	struct weft__events_ops ops = {.event = count, .data = &n};

	load(&list, dir);
	begin_ns = bench_cpu_ns();
	if (weft__recording_events(&list.all[0], 0, UINT64_MAX, &ops) < 0)
		abort();
	printf("%llu %llu\n", (unsigned long long)n, (unsigned long long)(bench_cpu_ns() - begin_ns));
	weft__recordings_fini(&list);
}

/* The most memory that this process had, in KiB. Unlike that of getrusage it does not begin with the parent's. */
static unsigned long most_kib(void)
{
	FILE *file = fopen("/proc/self/status", "re");
	unsigned long kib = 0;
	char line[256];

	while (file && fgets(line, sizeof(line), file))
		if (strncmp(line, "VmHWM:", 6) == 0)
			kib = strtoul(line + 6, NULL, 10);
	if (file)
		fclose(file);
	return kib;
}

static void scan(const char *dir, const char *table)
{
	struct weft__scan_opts opts = {.table = weft__tables_find(table)};
	struct weft__recordings list = {0};
	struct weft__set set;
	struct weft__scan *rows;
	const struct weft__row *row;
	uint64_t n = 0, begin_ns;

	load(&list, dir);
	if (opts.table == WEFT__N_TABLES || weft__set_init(&set, &list, true) < 0)
		abort();
	begin_ns = bench_cpu_ns();
	if (weft__scan_open(&rows, &set, &opts) < 0)
		abort();
	while (weft__scan_next(rows, &row) > 0)
		n++;
	printf("%llu %llu %llu %lu\n", (unsigned long long)n, (unsigned long long)list.all[0].n_events,
	       (unsigned long long)(bench_cpu_ns() - begin_ns), most_kib());
	weft__scan_close(rows);
	weft__set_fini(&set);
	weft__recordings_fini(&list);
}

int main(int argc, char **argv)
{
	weft__alloc_plain();
	if ((argc == 5 || argc == 6) && strcmp(argv[1], "repeat") == 0)
		repeat(argv[2], argv[3], strtoull(argv[4], NULL, 10), argc == 6 ? strtoull(argv[5], NULL, 10) : 1);
	else if (argc == 3 && strcmp(argv[1], "decode") == 0)
		decode(argv[2]);
	else if (argc == 4 && strcmp(argv[1], "rows") == 0)
		scan(argv[2], argv[3]);
	else
		return 2;
	return 0;
}
