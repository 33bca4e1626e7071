/* SPDX-License-Identifier: Apache-2.0 */
#include "ship/bundle.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "ship/zip.h"

#define ENTRY "weft_dump_0.weft"
#define SECOND_MS 1000u

void weft__bundle_times(const struct weft_segment *segment, uint64_t *start_ms, uint64_t *end_ms)
{
	const struct weft_segment_info *info = weft_segment_info(segment);
	uint64_t lasted = info->last_ns > info->start_mono_ns ? info->last_ns - info->start_mono_ns : 0;

	*start_ms = info->start_real_ns / 1000000u;
	*end_ms = (info->start_real_ns + lasted) / 1000000u;
}

static const char *fact(const struct weft_segment *segment, const char *key)
{
	const char *value = weft_segment_fact(segment, key);

	return value ? value : "";
}

/* '_' separates the parts of the name, and '/' those of a key. */
static void put_id(const char *id, char *to, size_t bytes)
{
	size_t i;

	for (i = 0; id[i] && i + 1 < bytes; i++)
		to[i] = (char)(id[i] == '/' || id[i] == '_' ? '-' : id[i]);
	to[i] = 0;
}

/* KIND_ID_: a machine that no service knows is named by its host, so that two of them do not share a name. */
static void put_machine(const struct weft_segment *segment, char *to, size_t bytes)
{
	const char *task = fact(segment, "aws.ecs.task.arn"), *host = fact(segment, "host.name");
	const char *instance = strcmp(fact(segment, "cloud.platform"), "aws_ec2") == 0 ? fact(segment, "host.id") : "";
	char id[200];

	put_id(*task ? task : *instance ? instance : host, id, sizeof(id));
	snprintf(to, bytes, "%s_%s_", *task ? "ecs" : *instance ? "ec2" : *host ? "onprem" : "unknown", id);
}

static void put_time(const struct weft_segment *segment, char *to, size_t bytes)
{
	uint64_t start, end;
	time_t seconds;
	struct tm tm;
	size_t n;

	weft__bundle_times(segment, &start, &end);
	seconds = (time_t)(end / SECOND_MS);
	gmtime_r(&seconds, &tm);
	n = strftime(to, bytes, "%Y-%m-%dT%H-%M-%S", &tm);
	if (end - start < SECOND_MS)
		n += (size_t)snprintf(to + n, bytes - n, ".%03u", (unsigned)(end % SECOND_MS));
	snprintf(to + n, bytes - n, "Z");
}

int weft__bundle_name(const struct weft_segment *segment, const char *group, char name[BUNDLE_NAME])
{
	const char *pid = fact(segment, "process.pid");
	char machine[240], when[48], *at;
	int n;

	if (!group || !*group)
		group = fact(segment, "service.name");
	put_machine(segment, machine, sizeof(machine));
	put_time(segment, when, sizeof(when));
	n = snprintf(name, BUNDLE_NAME, "profile_%s_%s_%s_%s.zip", *group ? group : "unknown", machine,
		     *pid ? pid : "0", when);
	for (at = name; (at = strchr(at, '/'));)
		*at = '-';
	return n < 0 || n > NAME_MAX ? -ENAMETOOLONG : 0;
}

void weft__bundle_metadata(uint64_t start_ms, uint64_t end_ms, uint64_t interval_ms, struct weft__buf *to)
{
	char text[160];
	int n = snprintf(text, sizeof(text),
			 "{\"start\":%" PRIu64 ",\"end\":%" PRIu64 ",\"reporting_interval\":%" PRIu64 "}", start_ms,
			 end_ms, interval_ms);

	weft__buf_put(to, text, (size_t)n);
}

int weft__bundle_write(const struct weft__parcel *parcel, int to, uint64_t *bytes)
{
	struct weft__buf metadata = {0};
	struct weft__zip zip;
	uint64_t start, end;
	int r;

	weft__bundle_times(parcel->segment, &start, &end);
	weft__zip_init(&zip, to, end / SECOND_MS);
	weft__bundle_metadata(start, end, end - start, &metadata);
	r = metadata.oom ? -ENOMEM : weft__zip_add_file(&zip, ENTRY, parcel->fd, parcel->bytes);
	if (!r)
		r = weft__zip_add(&zip, BUNDLE_METADATA, metadata.bytes, metadata.n);
	if (!r)
		r = weft__zip_end(&zip, bytes);
	weft__zip_fini(&zip);
	weft__buf_free(&metadata);
	return r;
}

/* Beside the segment: its file system has room for segments. Memory, where there are no files without names. */
static int open_nameless(const char *beside)
{
	char dir[PATH_MAX];
	int fd;

	snprintf(dir, sizeof(dir), "%s", beside);
	fd = open(dirname(dir), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fd < 0)
		fd = memfd_create("weft-bundle", MFD_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int weft__bundle_make(const struct weft__parcel *parcel, uint64_t *bytes)
{
	int fd = open_nameless(parcel->path), r;

	if (fd < 0)
		return fd;
	r = weft__bundle_write(parcel, fd, bytes);
	if (!r)
		return fd;
	close(fd);
	return r;
}
