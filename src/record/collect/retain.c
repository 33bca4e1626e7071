/* SPDX-License-Identifier: Apache-2.0 */
/* Keeping sealed segments within the limits of bytes and age, oldest first. COLLECTOR.
 *
 * In a directory the segments of the same program count, of this process and of earlier ones: files of this user, of
 * the name that weft gives to segments of that program, and with weft's mark. What others keep there is theirs. A
 * file that is gone when it is to be deleted was somebody else's to delete. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/dir.h"
#include "base/sort.h"
#include "record/collect/segments.h"
#include "record/ring/names.h"
#include "segment/format.h"

struct old_file {
	uint64_t time_ns;
	uint64_t bytes;
	struct weft__own own;
	char name[NAME_BYTES];
};

static int older_first(const void *a, const void *b)
{
	const struct old_file *x = a;
	const struct old_file *y = b;

	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	return strcmp(x->name, y->name);
}

/* Whether a segment of that name is of the program whose recording has that stem. */
static int same_program(const char *name, const char *stem)
{
	size_t n = stem_of_segment(name, ".weft"), program = name_of_stem(stem, strlen(stem));

	return n && program && name_of_stem(name, n) == program && !strncmp(name, stem, program);
}

/* Its sealed segments in the directory. What does not fit in memory is not deleted this time. */
static struct old_file *list_files(struct weft__list *dir, const char *stem, size_t *ret_n)
{
	struct old_file *files = NULL;
	size_t n = 0, cap = 0;
	const char *name;

	while ((name = weft__list_next(dir))) {
		struct old_file *grown;
		struct stat st;

		if (strlen(name) >= NAME_BYTES || !same_program(name, stem) || weft__dir_mine(dir->fd, name, &st))
			continue;
		grown = weft__grow(files, &cap, n, sizeof(*files));
		if (!grown)
			break;
		files = grown;
		files[n].time_ns = (uint64_t)st.st_mtim.tv_sec * 1000000000u + (uint64_t)st.st_mtim.tv_nsec;
		files[n].bytes = (uint64_t)st.st_size;
		files[n].own = (struct weft__own){st.st_dev, st.st_ino};
		snprintf(files[n].name, sizeof(files[n].name), "%s", name);
		n++;
	}
	*ret_n = n;
	return files;
}

static int too_old(const struct weft__segments *s, uint64_t time_ns)
{
	return s->keep_ns && weft__jump_age(&s->jump, time_ns) > s->keep_ns;
}

static int delete_segment(int dir, const struct old_file *file)
{
	int fd = weft__dir_file(dir, file->name, O_RDONLY);
	int ours = fd >= 0 && weft__own_is(&file->own, fd) && weft__file_marked(fd, SEG_MAGIC);

	if (fd >= 0)
		close(fd);
	return ours && unlinkat(dir, file->name, 0) == 0;
}

static void retain_files(struct weft__segments *s)
{
	int at = weft__dir_use(s->dir, 0, NULL);
	struct weft__list dir = {.fd = -1};
	int err = at < 0 ? at : weft__list_open(&dir, at, ".");
	struct old_file *files;
	uint64_t total = s->fd >= 0 ? s->writer.offset : 0;
	size_t n, i;

	if (at >= 0)
		close(at);
	if (err)
		return;
	files = list_files(&dir, s->stem, &n);
	for (i = 0; i < n; i++)
		total += files[i].bytes;
	if (n)
		weft__sort(files, n, sizeof(*files), older_first);
	for (i = 0; i < n && (total > s->keep_bytes || too_old(s, files[i].time_ns)); i++) {
		if (delete_segment(dir.fd, &files[i]))
			s->n_deleted++;
		total -= files[i].bytes;
	}
	weft__free(files);
	weft__list_close(&dir);
}

static void retain_memory(struct weft__segments *s)
{
	uint64_t total = s->fd >= 0 ? s->writer.offset : 0;
	size_t i, drop = 0;

	for (i = 0; i < s->n_kept; i++)
		total += s->kept[i].bytes;
	while (drop < s->n_kept && (total > s->keep_bytes || too_old(s, s->kept[drop].real_ns))) {
		total -= s->kept[drop].bytes;
		weft__own_close(&s->kept[drop].own, s->kept[drop].fd);
		drop++;
		s->n_deleted++;
	}
	if (drop)
		memmove(s->kept, s->kept + drop, (s->n_kept - drop) * sizeof(*s->kept));
	s->n_kept -= drop;
}

void weft__segments_retain(struct weft__segments *s)
{
	weft__jump_note(&s->jump, weft__clock_real(), weft__jump_boot());
	if (s->dir)
		retain_files(s);
	else
		retain_memory(s);
}
