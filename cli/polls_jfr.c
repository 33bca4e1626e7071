/* SPDX-License-Identifier: Apache-2.0 */
/* Polls that the rust-agent of async-profiler caught. Each is an event of the user's, tokio.PollcatchV1, of 16
 * bytes: the TSC before the poll and after it. The event is emitted at the end of the poll. So its start is the
 * event's time less the difference, and the samples of its thread between the two fell into it, in whichever chunk
 * they are. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/dir.h"
#include "base/text.h"
#include "cli.h"
#include "jfr/jfr.h"
#include "package/keys.h"
#include "polls.h"

#define POLLCATCH "tokio.PollcatchV1"
#define POLLCATCH_BYTES 16

struct sample {
	int64_t tid;
	uint64_t at_ns, span_ns; /* CLOCK_REALTIME */
	uint64_t n;
	uint32_t stack;
	bool wall, sleeping;
};

/* All files, read one after the other; samples are of one file. */
struct reading {
	struct polls polls;
	const struct polls_opts *opts;
	struct weft__jfr jfr;
	const char *path;
	uint64_t start_ns; /* of the file */
	bool other_clock;
	size_t n_caught; /* polls of the file, short ones too */
	struct sample *samples;
	size_t n_samples, cap_samples;
	struct weft__keys stacks; /* names, each with its zero byte */
	struct weft__map stack_by_number;
	struct weft__buf names; /* of one stack */
	char **threads;
	size_t n_threads, cap_threads;
};

/* A name that stays until the end; NULL: none, or no memory for it. */
static const char *keep_thread(struct reading *r, struct weft__jfr_text name)
{
	char **grown;
	size_t i;

	for (i = 0; i < r->n_threads; i++)
		if (weft__jfr_same(name, r->threads[i]))
			return r->threads[i];
	grown = name.n ? weft__grow(r->threads, &r->cap_threads, r->n_threads, sizeof(*grown)) : NULL;
	if (!grown)
		return NULL;
	r->threads = grown;
	grown[r->n_threads] = weft__alloc(name.n + 1);
	if (!grown[r->n_threads])
		return NULL;
	memcpy(grown[r->n_threads], name.at, name.n);
	grown[r->n_threads][name.n] = 0;
	return r->threads[r->n_threads++];
}

static int add_caught(struct reading *r, const struct weft__jfr_event *event)
{
	uint64_t ticks = get_u64(event->data.at + 8) - get_u64(event->data.at);
	uint64_t begin_ns = weft__jfr_ns(&r->jfr, event->ticks - ticks);
	struct polls_one one = {.begin_ns = (int64_t)(begin_ns - r->start_ns),
				.duration_ns = (int64_t)(event->start_ns - begin_ns),
				.start_real_ns = (int64_t)r->start_ns,
				.tid = event->tid};
	uint64_t end_ns = event->start_ns > r->start_ns ? event->start_ns - r->start_ns : 0;
	size_t i;

	r->n_caught++;
	if (event->start_ns < begin_ns || one.duration_ns < (int64_t)r->opts->min_ns || end_ns < r->opts->from_ns ||
	    (r->opts->to_ns && end_ns >= r->opts->to_ns))
		return 0;
	for (i = 0; i < POLLS_PARTS; i++)
		one.parts[i] = POLLS_NONE;
	one.thread = keep_thread(r, event->thread_name);
	return polls_asked(r->opts, &one, one.tid) ? polls_add(&r->polls, &one) : 0;
}

static int find_stack(struct reading *r, uint64_t number, uint32_t *ret)
{
	int rc;

	*ret = weft__map_get(&r->stack_by_number, number);
	if (*ret != WEFT__MAP_NONE)
		return 0;
	weft__buf_clear(&r->names);
	if (!weft__jfr_stack(&r->jfr, number, &r->names))
		weft__buf_clear(&r->names);
	rc = weft__keys_add(&r->stacks, r->names.bytes, r->names.n, ret);
	return rc < 0 ? rc : weft__map_put(&r->stack_by_number, number, *ret);
}

static int add_sample(struct reading *r, const struct weft__jfr_event *event)
{
	struct sample *grown = weft__grow(r->samples, &r->cap_samples, r->n_samples, sizeof(*grown));
	struct sample one = {.tid = event->tid,
			     .at_ns = event->start_ns,
			     .span_ns = event->span_ns,
			     .n = event->samples,
			     .wall = event->kind == WEFT__JFR_WALL_SAMPLE,
			     .sleeping = event->sleeping};

	if (!grown || find_stack(r, event->stack, &one.stack) < 0)
		return -ENOMEM;
	r->samples = grown;
	grown[r->n_samples++] = one;
	return 0;
}

static int take(void *data, const struct weft__jfr_event *event)
{
	struct reading *r = data;

	switch (event->kind) {
	case WEFT__JFR_CPU_SAMPLE:
	case WEFT__JFR_WALL_SAMPLE:
		return add_sample(r, event);
	case WEFT__JFR_SETTING:
		if (weft__jfr_same(event->name, "clock"))
			r->other_clock = !weft__jfr_same(event->data, "tsc");
		return 0;
	case WEFT__JFR_USER:
		if (event->data.n == POLLCATCH_BYTES && event->name.n == strlen(POLLCATCH) &&
		    strncasecmp((const char *)event->name.at, POLLCATCH, event->name.n) == 0)
			return add_caught(r, event);
		return 0;
	default:
		return 0;
	}
}

static int by_thread(const void *left, const void *right)
{
	const struct sample *a = left, *b = right;

	if (a->tid != b->tid)
		return a->tid < b->tid ? -1 : 1;
	return a->at_ns < b->at_ns ? -1 : a->at_ns > b->at_ns;
}

/* Index of the first sample of the thread from that time on. */
static size_t first_from(const struct reading *r, int64_t tid, uint64_t at_ns)
{
	const struct sample key = {.tid = tid, .at_ns = at_ns};
	size_t low = 0, high = r->n_samples;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (by_thread(&r->samples[middle], &key) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* A wall sample may stand for several, of which some are beyond the poll. */
static uint64_t samples_within(const struct sample *sample, uint64_t end_ns)
{
	uint64_t within;

	if (sample->n < 2 || sample->at_ns + sample->span_ns <= end_ns)
		return sample->n;
	within = (uint64_t)((double)sample->n * (double)(end_ns - sample->at_ns) / (double)sample->span_ns);
	return within ? within : 1;
}

static int match(struct reading *r, size_t first_poll)
{
	size_t i, k;

	if (r->n_samples)
		qsort(r->samples, r->n_samples, sizeof(*r->samples), by_thread);
	for (i = first_poll; i < r->polls.n; i++) {
		const struct polls_one *one = &r->polls.at[i];
		uint64_t begin_ns = r->start_ns + (uint64_t)one->begin_ns,
			 end_ns = begin_ns + (uint64_t)one->duration_ns;

		for (k = first_from(r, one->tid, begin_ns);
		     k < r->n_samples && r->samples[k].tid == one->tid && r->samples[k].at_ns <= end_ns; k++) {
			const struct sample *sample = &r->samples[k];
			uint64_t n = samples_within(sample, end_ns);
			struct polls_hit hit = {.poll = (uint32_t)i,
						.stack = sample->stack,
						.n = (int64_t)n,
						.state = !sample->wall      ? "on cpu"
							 : sample->sleeping ? "wall, sleeping"
									    : "wall, running"};

			if (polls_hit(&r->polls, &hit) < 0)
				return -ENOMEM;
		}
	}
	return 0;
}

static int functions_of(void *data, const struct polls_hit *hit, struct polls_names *ret)
{
	const struct reading *r = data;
	size_t n, at;
	const char *names = weft__keys_at(&r->stacks, hit->stack, &n);
	int rc = 0;

	ret->n = 0;
	for (at = 0; at < n && rc == 0; at += strlen(names + at) + 1)
		rc = polls_name(ret, names + at);
	return rc;
}

/* All chunks. 0, -ENOMEM, or another negative error: the first `*n` chunks were read. */
static int read_chunks(struct reading *r, size_t *n, struct weft_error *err)
{
	int rc;

	for (*n = 0; (rc = weft__jfr_chunk(&r->jfr, err)) > 0; ++*n) {
		if (*n == 0)
			r->start_ns = r->jfr.start_ns;
		weft__map_fini(&r->stack_by_number); /* numbers are of the chunk */
		rc = weft__jfr_events(&r->jfr, take, r, err);
		if (rc)
			return rc;
	}
	return rc;
}

static int read_bytes(struct reading *r, const void *bytes, size_t n)
{
	size_t first_poll = r->polls.n, n_chunks;
	struct weft_error err = {0};
	int rc, code = CLI_OK;

	r->n_samples = r->n_caught = 0;
	r->other_clock = false;
	weft__jfr_init(&r->jfr, bytes, n);
	rc = read_chunks(r, &n_chunks, &err);
	weft__jfr_fini(&r->jfr);
	if (rc == -ENOMEM || (rc >= 0 && match(r, first_poll) < 0))
		return cli_fail("out of memory");
	if (rc < 0) {
		code = cli_fail("%s: %s", r->path, err.msg);
		if (n_chunks && match(r, first_poll) == 0)
			code = CLI_DAMAGED; /* what came before is good */
	}
	if (r->other_clock && r->n_caught) {
		r->polls.n = first_poll;
		return cli_fail("%s: its clock is not the TSC, and lengths of polls are in TSC ticks: record with "
				"clock=tsc",
				r->path);
	}
	if (rc >= 0 && r->n_caught == 0)
		cli_warn("%s: there are no " POLLCATCH " events in it: it has %zu samples, but says nothing of polls; "
			 "`jfrconv %s x.pb.gz` of async-profiler makes a profile of the samples",
			 r->path, r->n_samples, r->path);
	return code;
}

static int read_file(struct reading *r, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), code;
	void *bytes = MAP_FAILED;
	struct stat st;

	if (fd >= 0 && fstat(fd, &st) == 0 && st.st_size > 0)
		bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (fd >= 0)
		close(fd);
	if (bytes == MAP_FAILED)
		return cli_fail("%s: %s", path, strerror(errno));
	r->path = path;
	code = read_bytes(r, bytes, (size_t)st.st_size);
	munmap(bytes, (size_t)st.st_size);
	return code;
}

static void finish(struct reading *r)
{
	polls_fini(&r->polls);
	weft__free(r->samples);
	weft__keys_fini(&r->stacks);
	weft__map_fini(&r->stack_by_number);
	weft__buf_free(&r->names);
	while (r->n_threads)
		weft__free(r->threads[--r->n_threads]);
	weft__free(r->threads);
}

static bool is_jfr(const char *path)
{
	char magic[4] = "";
	FILE *f = fopen(path, "re");
	bool is = f && fread(magic, 1, sizeof(magic), f) == sizeof(magic) && weft__jfr_is(magic, sizeof(magic));

	if (f)
		fclose(f);
	return is;
}

/* Whether a directory has such files, and no segments. */
static bool has_jfr(const char *path)
{
	struct weft__list list;
	const char *name;
	bool jfr = false, weft = false;

	if (weft__list_open(&list, AT_FDCWD, path) < 0)
		return false;
	while ((name = weft__list_next(&list))) {
		jfr |= weft__ends_in(name, ".jfr");
		weft |= weft__ends_in(name, ".weft") || weft__ends_in(name, ".weft.active");
	}
	weft__list_close(&list);
	return jfr && !weft;
}

/* One argument: a file, or those of a directory. How many could be read. */
static unsigned read_path(struct reading *r, const char *path, int *code)
{
	struct weft__list list;
	unsigned good = 0;
	const char *name;
	char file[4096];
	int one;

	if (is_jfr(path)) {
		one = read_file(r, path);
		*code = one == CLI_OK ? *code : CLI_DAMAGED;
		return one != CLI_FAILED;
	}
	if (weft__list_open(&list, AT_FDCWD, path) < 0)
		return 0;
	while ((name = weft__list_next(&list))) {
		if (!weft__ends_in(name, ".jfr"))
			continue;
		snprintf(file, sizeof(file), "%.3800s/%.255s", path, name);
		one = read_file(r, file);
		*code = one == CLI_OK ? *code : CLI_DAMAGED;
		good += one != CLI_FAILED;
	}
	weft__list_close(&list);
	return good;
}

int polls_jfr(int n, char **paths, const struct polls_opts *opts, int code)
{
	struct reading r = {.opts = opts};
	unsigned good = 0;
	int i, n_jfr = 0, rc = 0;

	for (i = 0; i < n; i++)
		n_jfr += is_jfr(paths[i]) || has_jfr(paths[i]);
	if (n_jfr == 0)
		return POLLS_NO_JFR;
	if (n_jfr < n)
		return cli_fail("some of these are JFR files and some are not: list them one after the other");
	r.polls.functions = functions_of;
	r.polls.data = &r;
	r.polls.source = "CPU samples, and wall samples; both may be of the same moment";
	for (i = 0; i < n; i++)
		good += read_path(&r, paths[i], &code);
	if (good)
		rc = polls_print(&r.polls, opts);
	finish(&r);
	if (rc < 0)
		return cli_fail("cannot list polls: %s", weft_strerror(rc));
	return good ? code : CLI_FAILED;
}
