/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"
#include "export.h"
#include "ship/bundle.h"
#include "ship/zip.h"

struct archive {
	struct weft__zip zip;
	unsigned n;
	uint64_t start_ms, end_ms, interval_ms; /* the last: of the longest segment */
};

static void note_times(struct archive *to, const struct weft_segment *segment)
{
	uint64_t start, end;

	weft__bundle_times(segment, &start, &end);
	if (to->n == 0) {
		to->start_ms = start;
		weft__zip_init(&to->zip, to->zip.fd, start / 1000u);
	}
	to->start_ms = start < to->start_ms ? start : to->start_ms;
	to->end_ms = end > to->end_ms ? end : to->end_ms;
	to->interval_ms = end - start > to->interval_ms ? end - start : to->interval_ms;
}

static int add(struct archive *to, const char *path)
{
	struct weft_segment *segment;
	struct weft_error err = {0};
	char name[40];
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC), r;

	if (fd < 0 || fstat(fd, &st) < 0) {
		cli_fail("%s: %s", path, strerror(errno));
		r = -errno;
	} else if ((r = weft_segment_open(&segment, path, &err)) < 0) {
		cli_fail("%s", err.msg);
	} else {
		note_times(to, segment);
		snprintf(name, sizeof(name), "weft_dump_%u.weft", to->n++);
		weft_segment_close(segment);
		r = weft__zip_add_file(&to->zip, name, fd, (uint64_t)st.st_size);
		if (r)
			cli_fail("cannot put %s into the archive: %s", path, weft_strerror(r));
	}
	if (fd >= 0)
		close(fd);
	return r;
}

static int finish(struct archive *archive)
{
	struct weft__buf metadata = {0};
	uint64_t bytes;
	int r;

	weft__bundle_metadata(archive->start_ms, archive->end_ms, archive->interval_ms, &metadata);
	r = metadata.oom ? -ENOMEM : weft__zip_add(&archive->zip, BUNDLE_METADATA, metadata.bytes, metadata.n);
	if (!r)
		r = weft__zip_end(&archive->zip, &bytes);
	weft__buf_free(&metadata);
	return r;
}

int export_zip(struct weft__recordings *list, const char *path, int code)
{
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644), r = 0;
	struct archive archive = {.zip = {.fd = fd}};
	size_t i, j;

	if (fd < 0)
		return cli_fail("cannot write %s: %s", path, strerror(errno));
	for (i = 0; i < list->n && !r; i++)
		for (j = 0; j < list->all[i].n_files && !r; j++)
			r = add(&archive, list->all[i].files[j].path);
	if (!r && (r = finish(&archive)) < 0)
		cli_fail("cannot write %s: %s", path, weft_strerror(r));
	weft__zip_fini(&archive.zip);
	if (close(fd) < 0 && !r)
		r = cli_fail("cannot write %s: %s", path, strerror(errno));
	if (!r)
		return code;
	unlink(path);
	return CLI_FAILED;
}
