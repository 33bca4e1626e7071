/* SPDX-License-Identifier: Apache-2.0 */
/* Writes small segments for tests: the definitions of feed.h and the events that a test lists, thread by thread. */
#ifndef WEFT_TEST_SEGFILE_H
#define WEFT_TEST_SEGFILE_H

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "segment/batch.h"
#include "segment/defs.h"
#include "segment/format.h"
#include "segment/writer.h"
#include "weft/kind.h"
#include "weft/runtime.h"
#include "weft_test.h"

#define SEGFILE_MONO 1000000u
#define SEGFILE_REAL 1700000000000000000u

struct segfile_event {
	uint64_t time_ns;
	uint32_t thread_id;
	uint32_t kind;
	uint64_t fields[8];
	uint32_t n_fields;
};

struct segfile {
	uint8_t recording; /* every byte of the id */
	uint64_t sequence;
	const char *pid;
	const struct segfile_event *events; /* in order of thread, then time */
	size_t n_events;
	const struct weft_loss *losses;
	size_t n_losses;
	int unsealed;
};

/* Further definitions, when a test sets it. */
static void (*segfile_more)(struct weft__defs *defs, const struct segfile *file);

static inline void segfile_defs(struct weft__defs *defs, const struct segfile *file)
{
	static const struct weft_thread threads[] = {{1, 101, 0, "w0", SEGFILE_MONO},
						     {2, 102, 1, "w1", SEGFILE_MONO},
						     {3, 103, WEFT_WORKER_NONE, "io", SEGFILE_MONO}};
	static const struct weft_field fields[] = {{"bytes", WEFT_TYPE_U64, "By"}, {"path", WEFT_TYPE_STRING, ""}};
	size_t i;

	weft__defs_builtin_kinds(defs);
	for (i = 0; i < 3; i++)
		weft__defs_thread(defs, &threads[i]);
	weft__defs_runtime(defs, 0, "demo");
	weft__defs_worker(defs, 0, 0, 0);
	weft__defs_worker(defs, 1, 0, 1);
	weft__defs_location(defs, 1, 80, "accept", "src/server.c");
	weft__defs_location(defs, 2, 120, "echo", "src/server.c");
	weft__defs_string(defs, 1, "/up\x1b[31mload");
	weft__defs_kind(defs, 64, "request", fields, 2);
	weft__defs_fact(defs, "process.pid", file->pid);
	weft__defs_fact(defs, "service.name", "demo");
	for (i = 0; i < file->n_losses; i++)
		weft__defs_loss(defs, &file->losses[i]);
	if (segfile_more)
		segfile_more(defs, file);
}

/* Writes `file` to `path`; what goes wrong fails the test. */
static inline void segfile_write(const struct segfile *file, const char *path)
{
	struct weft__segment_head head = {0, {0}, file->sequence, SEGFILE_MONO, SEGFILE_REAL};
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	struct weft__encoder *enc = NULL;
	struct weft__writer w = {0};
	struct weft__defs defs = {0};
	struct weft__batch batch;
	struct weft__buf payload = {0};
	uint64_t first_ns, last_ns;
	size_t i;

	memset(head.recording, file->recording, 16);
	CHECK(fd >= 0);
	CHECK_EQ(weft__encoder_open(&enc, 1), 0);
	CHECK_EQ(weft__writer_begin(&w, fd, &head), 0);
	segfile_defs(&defs, file);
	CHECK_EQ(weft__writer_defs(&w, enc, &defs), 0);
	weft__batch_init(&batch, 1);
	for (i = 0; i < file->n_events; i++) {
		const struct segfile_event *ev = &file->events[i];

		if (i == 0 || ev->thread_id != ev[-1].thread_id)
			CHECK_EQ(weft__batch_begin(&batch, ev->thread_id, 0, 0, 0), 0);
		CHECK_EQ(weft__batch_add(&batch, ev->time_ns, ev->kind, ev->fields, ev->n_fields), 0);
		if (i + 1 == file->n_events || ev->thread_id != ev[1].thread_id)
			weft__batch_end(&batch, 0);
	}
	if (file->n_events) {
		CHECK_EQ(weft__encoder_events(enc, &batch, &payload, &first_ns, &last_ns), 0);
		CHECK_EQ(weft__writer_block(&w, BLOCK_EVENTS, 0, (uint32_t)file->n_events, first_ns, last_ns, &payload),
			 0);
	}
	if (!file->unsealed)
		CHECK_EQ(weft__writer_seal(&w, 0), 0);
	weft__buf_free(&payload);
	weft__batch_fini(&batch);
	weft__defs_fini(&defs);
	weft__writer_fini(&w);
	weft__encoder_close(enc);
	close(fd);
}

/* A directory of the test's own; remove it with segfile_remove. */
static inline char *segfile_dir(char *dir, size_t bytes)
{
	const char *tmp = getenv("TMPDIR");

	snprintf(dir, bytes, "%s/weft-test-XXXXXX", tmp ? tmp : "/tmp");
	CHECK(mkdtemp(dir) != NULL);
	return dir;
}

static inline const char *segfile_path(const char *dir, const char *name)
{
	static char path[512];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

static inline void segfile_remove(const char *dir, const char *const *names)
{
	for (; *names; names++)
		unlink(segfile_path(dir, *names));
	CHECK_EQ(rmdir(dir), 0);
}

#define EV(time, thread_id, kind, ...)                                                                                 \
	{                                                                                                              \
		time, thread_id, WEFT_KIND_##kind, {__VA_ARGS__},                                                      \
			sizeof((uint64_t[]){0, ##__VA_ARGS__}) / sizeof(uint64_t) - 1                                  \
	}

#endif
