/* SPDX-License-Identifier: Apache-2.0 */
#include "record/collect/check.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/dir.h"
#include "base/error.h"
#include "record/collect/collector.h"
#include "segment/reader.h"
#include "segment/writer.h"
#include "weft/report.h"

#define FIRST_TURN 2        /* a program that is over sooner is spared it */
#define EXPECTED_SAMPLES 50 /* so many should have been taken: none is no chance */

/* What failed may work later. */
static void note(struct weft__collector *c, enum weft_check what, int failed, const char *why)
{
	uint32_t before = c->check.failed;

	pthread_mutex_lock(&c->mutex);
	c->check.passed = (c->check.passed & ~(uint32_t)what) | (failed ? 0u : (uint32_t)what);
	c->check.failed = (c->check.failed & ~(uint32_t)what) | (failed ? (uint32_t)what : 0u);
	if (failed && !before)
		snprintf(c->check.why, sizeof(c->check.why), "%s", why);
	pthread_mutex_unlock(&c->mutex);
	if (failed && !(before & (uint32_t)what))
		weft__log(WEFT_LOG_WARN, "self-check: %s", why);
}

/* A segment of nothing but a fact, in a file without a name. */
static int write_segment(struct weft__collector *c, int fd)
{
	struct weft__segment_head head = {.mono_ns = 1, .real_ns = 1};
	struct weft__writer writer = {0};
	struct weft__defs defs = {0};
	int r = weft__writer_begin(&writer, fd, &head);

	weft__defs_fact(&defs, "check", "written");
	if (!r)
		r = weft__writer_defs(&writer, c->encoder, &defs);
	if (!r)
		r = weft__writer_seal(&writer, 0);
	weft__writer_fini(&writer);
	weft__defs_fini(&defs);
	return r;
}

static int read_segment(int fd)
{
	struct weft_segment *segment;
	struct weft_error err = {0};
	const char *fact;
	int r = weft__segment_open_fd(&segment, fd, "self-check", &err);

	if (r)
		return r;
	fact = weft_segment_fact(segment, "check");
	r = fact && !strcmp(fact, "written") ? 0 : -EIO;
	weft_segment_close(segment);
	return r;
}

/* A directory that cannot be had any more is no failure while there is a file in it: the program has given away the
 * right to it. Nor are file systems without files without names. */
static void check_segment(struct weft__collector *c)
{
	int dir = weft__dir_use(c->segments.dir, 0, NULL);
	int fd = dir < 0 ? dir : openat(dir, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600), r;
	const char *doing = "written";
	char why[160];

	r = fd < 0 && dir >= 0 ? -errno : fd;
	if (dir >= 0)
		close(dir);
	if (fd >= 0) {
		r = write_segment(c, fd);
		if (!r) {
			doing = "read";
			r = read_segment(fd);
		}
		close(fd);
	}
	if (r == -EOPNOTSUPP || r == -EISDIR || r == -ENOMEM || r == -EMFILE || (fd < 0 && c->segments.fd >= 0))
		return;
	snprintf(why, sizeof(why), "%.100s: a segment cannot be %s: %s", c->segments.dir, doing, weft_strerror(r));
	note(c, WEFT_CHECK_SEGMENT, r < 0, why);
}

/* Once there is a sample it is known; that there is none, when many should have been taken. */
static void check_samples(struct weft__collector *c)
{
	uint64_t ms = c->shown.program_ns / 1000000;
	char why[160];

	if (!c->shown.samples && (!c->shown.sample_hz || ms * c->shown.sample_hz < EXPECTED_SAMPLES * UINT64_C(1000)))
		return;
	snprintf(why, sizeof(why), "no sample was taken in %llu ms of CPU time: run weft doctor",
		 (unsigned long long)ms);
	note(c, WEFT_CHECK_SAMPLES, !c->shown.samples, why);
}

void weft__check_tend(struct weft__collector *c)
{
	if (c->check.turns <= FIRST_TURN && ++c->check.turns == FIRST_TURN && c->segments.dir)
		check_segment(c);
	if (c->check.failed & WEFT_CHECK_SEGMENT && c->shown.segments)
		note(c, WEFT_CHECK_SEGMENT, 0, "");
	if (!(c->check.passed & WEFT_CHECK_SAMPLES))
		check_samples(c);
}
