/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/recording.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/error.h"
#include "segment/reader.h"

static int refuse(struct weft__recordings *list, const char *path, int status, const char *why)
{
	struct weft__refusal *grown = weft__grow(list->refused, &list->cap_refused, list->n_refused, sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	list->refused = grown;
	grown[list->n_refused] = (struct weft__refusal){weft__strdup(path), status, weft__strdup(why)};
	list->n_refused++;
	return grown[list->n_refused - 1].path && grown[list->n_refused - 1].why ? 0 : -ENOMEM;
}

static int recording_get(struct weft__recordings *list, const uint8_t id[16], uint64_t dump,
			 struct weft__recording **ret)
{
	struct weft__recording *grown;
	size_t i;

	for (i = 0; i < list->n; i++)
		if (list->all[i].dump == dump && memcmp(list->all[i].id, id, 16) == 0) {
			*ret = &list->all[i];
			return 0;
		}
	grown = weft__grow(list->all, &list->cap, list->n, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	list->all = grown;
	memset(&grown[list->n], 0, sizeof(*grown));
	memcpy(grown[list->n].id, id, 16);
	grown[list->n].dump = dump;
	*ret = &grown[list->n++];
	return 0;
}

static void file_fini(struct weft__file *file)
{
	weft__free(file->path);
	weft__free(file->damage);
	memset(file, 0, sizeof(*file));
}

/* A segment may be there twice, as when it was copied: the one with more in it is taken. */
static int same_segment(struct weft__recordings *list, struct weft__file *old, struct weft__file *file)
{
	struct weft__file other = *old;
	int rc;

	if (old->device == file->device && old->inode == file->inode) {
		file_fini(file);
		return 0;
	}
	if (file->info.n_events > old->info.n_events) {
		*old = *file;
		*file = other;
	}
	rc = refuse(list, file->path, -EEXIST,
		    "holds the same segment as another file, which has as much or more: left out");
	file_fini(file);
	return rc;
}

static int add_segment(struct weft__recordings *list, const struct weft_segment *seg, struct weft__file *file)
{
	/* Dumps may have the same events, so each stands for itself. */
	uint64_t dump = weft_segment_fact(seg, "dump.why") ? file->info.sequence + 1 : 0;
	struct weft__recording *rec;
	struct weft__file *grown;
	size_t i;
	int rc = recording_get(list, file->info.recording, dump, &rec);

	if (rc == 0)
		rc = weft__names_add_segment(&rec->names, seg);
	if (rc == 0)
		rc = weft__frames_add_segment(&rec->frames, seg);
	if (rc < 0)
		return rc;
	for (i = 0; i < rec->n_files; i++)
		if (rec->files[i].info.sequence == file->info.sequence)
			return same_segment(list, &rec->files[i], file);
	grown = weft__grow(rec->files, &rec->cap_files, rec->n_files, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	rec->files = grown;
	rec->files[rec->n_files++] = *file;
	memset(file, 0, sizeof(*file));
	return 0;
}

/* `rc`, `seg` and `err` are of opening it. */
static int add_opened(struct weft__recordings *list, const char *path, int rc, struct weft_segment *seg,
		      const struct weft_error *err)
{
	struct weft__file file = {0};
	struct stat st;

	if (rc == -ENOMEM)
		return rc;
	if (rc < 0)
		return refuse(list, path, rc, err->msg[0] ? err->msg : weft_strerror(rc));
	if (fstat(seg->fd, &st) == 0) {
		file.device = (uint64_t)st.st_dev;
		file.inode = (uint64_t)st.st_ino;
	}
	file.info = *weft_segment_info(seg);
	file.path = weft__strdup(path);
	rc = file.path ? add_segment(list, seg, &file) : -ENOMEM;
	file_fini(&file);
	weft_segment_close(seg);
	return rc;
}

static bool ends_in(const char *name, const char *end)
{
	size_t n = strlen(name), m = strlen(end);

	return n > m && strcmp(name + n - m, end) == 0;
}

/* One in a directory. A file that went away in the meantime was rotated or deleted by the recorder, and links are
 * not followed. */
static int add_entry(struct weft__recordings *list, int dir, const char *name, const char *path)
{
	struct weft_segment *seg = NULL;
	struct weft_error err = {0};
	struct stat st;
	int rc;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || (!S_ISREG(st.st_mode) && !S_ISLNK(st.st_mode)))
		return 0;
	if (S_ISLNK(st.st_mode))
		return refuse(list, path, -ELOOP, "a link, which is not followed in a directory: name the file itself");
	rc = weft__segment_open_at(&seg, dir, name, path, &err);
	return add_opened(list, path, rc, seg, &err);
}

static int add_dir(struct weft__recordings *list, const char *path, struct weft_error *err)
{
	size_t bytes = strlen(path) + 260;
	char *file = weft__alloc(bytes);
	DIR *dir = file ? opendir(path) : NULL;
	struct dirent *entry;
	int rc = 0;

	if (!dir) {
		rc = file ? -errno : -ENOMEM;
		weft__free(file);
		return weft__fail(err, rc, "cannot list %s: %s", path, weft_strerror(rc));
	}
	while (rc == 0 && (entry = readdir(dir))) {
		if (!ends_in(entry->d_name, ".weft") && !ends_in(entry->d_name, ".weft.active"))
			continue;
		snprintf(file, bytes, "%s/%s", path, entry->d_name);
		rc = add_entry(list, dirfd(dir), entry->d_name, file);
	}
	closedir(dir);
	weft__free(file);
	return rc < 0 ? weft__fail(err, rc, "%s: %s", path, weft_strerror(rc)) : 0;
}

int weft__recordings_add(struct weft__recordings *list, const char *path, struct weft_error *err)
{
	struct weft_segment *seg = NULL;
	struct weft_error why = {0};
	struct stat st;
	int rc;

	if (stat(path, &st) < 0) {
		rc = -errno;
		return weft__fail(err, rc, "%s: %s", path, weft_strerror(rc));
	}
	if (S_ISDIR(st.st_mode))
		return add_dir(list, path, err);
	rc = weft_segment_open(&seg, path, &why);
	rc = add_opened(list, path, rc, seg, &why);
	return rc < 0 ? weft__fail(err, rc, "%s: %s", path, weft_strerror(rc)) : 0;
}

/* Whether this is another machine than the one that recorded, or another boot of it. */
static bool is_elsewhere(const struct weft__recording *rec)
{
	const char *recorded = weft__names_fact(&rec->names, "host.boot_id");
	FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
	char here[64] = "";

	if (file && fgets(here, sizeof(here), file))
		here[strcspn(here, "\n")] = 0;
	if (file)
		fclose(file);
	return recorded && here[0] && strcmp(recorded, here) != 0;
}

void weft__recording_naming(const struct weft__recording *rec, bool no_symbols, struct weft__naming *ret)
{
	const char *pid = weft__names_fact(&rec->names, "process.pid");
	char *rest = NULL;
	unsigned long number = pid ? strtoul(pid, &rest, 10) : 0;

	*ret = (struct weft__naming){.no_symbols = no_symbols, .elsewhere = is_elsewhere(rec)};
	if (pid && pid[0] >= '0' && pid[0] <= '9' && !*rest && number <= UINT32_MAX)
		ret->pid = (uint32_t)number;
}

static int file_order(const void *left, const void *right)
{
	const struct weft__file *a = left, *b = right;

	return a->info.sequence < b->info.sequence ? -1 : a->info.sequence > b->info.sequence;
}

static int recording_order(const void *left, const void *right)
{
	const struct weft__recording *a = left, *b = right;

	if (a->start_real_ns != b->start_real_ns)
		return a->start_real_ns < b->start_real_ns ? -1 : 1;
	if (memcmp(a->id, b->id, 16) != 0)
		return memcmp(a->id, b->id, 16);
	return a->dump < b->dump ? -1 : a->dump > b->dump;
}

static void recording_settle(struct weft__recording *rec)
{
	size_t i;

	qsort(rec->files, rec->n_files, sizeof(*rec->files), file_order);
	weft__names_settle(&rec->names);
	rec->start_ns = rec->files[0].info.start_mono_ns;
	for (i = 0; i < rec->n_files; i++) {
		const struct weft_segment_info *info = &rec->files[i].info;

		rec->n_events += info->n_events;
		rec->n_bytes += info->n_bytes;
		rec->n_event_bytes += info->n_event_bytes;
		if (info->n_events == 0)
			continue;
		if (!rec->first_ns || info->first_ns < rec->first_ns)
			rec->first_ns = info->first_ns;
		if (info->last_ns > rec->last_ns)
			rec->last_ns = info->last_ns;
	}
	if (rec->first_ns && rec->first_ns < rec->start_ns)
		rec->start_ns = rec->first_ns;
	rec->start_real_ns = weft__names_real_ns(&rec->names, rec->start_ns);
	rec->missing_segments =
		rec->files[rec->n_files - 1].info.sequence - rec->files[0].info.sequence + 1 - rec->n_files;
}

void weft__recordings_settle(struct weft__recordings *list)
{
	size_t i;

	for (i = 0; i < list->n; i++)
		recording_settle(&list->all[i]);
	if (list->n)
		qsort(list->all, list->n, sizeof(*list->all), recording_order);
}

void weft__recordings_fini(struct weft__recordings *list)
{
	size_t i, j;

	for (i = 0; i < list->n; i++) {
		for (j = 0; j < list->all[i].n_files; j++)
			file_fini(&list->all[i].files[j]);
		weft__free(list->all[i].files);
		weft__names_fini(&list->all[i].names);
		weft__frames_fini(&list->all[i].frames);
	}
	for (i = 0; i < list->n_refused; i++) {
		weft__free(list->refused[i].path);
		weft__free(list->refused[i].why);
	}
	weft__free(list->all);
	weft__free(list->refused);
	memset(list, 0, sizeof(*list));
}
