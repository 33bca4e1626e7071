/* SPDX-License-Identifier: Apache-2.0 */
/* Which segments there are. Of a directory more may come while a recording goes on, and one that was being written gets
 * another name when it is sealed. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analyze/json.h"
#include "base/alloc.h"
#include "segment/reader.h"
#include "view.h"
#include "weft/segment.h"

#define UNREADABLE_BYTES ((uint64_t)65536)

static bool ends_in(const char *name, const char *end)
{
	size_t n = strlen(name), m = strlen(end);

	return n > m && strcmp(name + n - m, end) == 0;
}

static struct view_segment *segment_get(struct view_files *files, const char *path)
{
	uint32_t number = weft__intern_get(&files->by_path, path, strlen(path));
	struct view_segment *grown;
	const char *slash;

	if (number)
		return &files->at[number - 1];
	grown = weft__grow(files->at, &files->cap, files->n, sizeof(*grown));
	if (!grown)
		return NULL;
	files->at = grown;
	grown[files->n] = (struct view_segment){.path = weft__strdup(path)};
	if (!grown[files->n].path)
		return NULL;
	if (weft__intern_add(&files->by_path, path, strlen(path), (uint32_t)files->n + 1) < 0) {
		weft__free(grown[files->n].path);
		return NULL;
	}
	slash = strrchr(grown[files->n].path, '/');
	grown[files->n].name = slash ? slash + 1 : grown[files->n].path;
	return &grown[files->n++];
}

/* What is in it; nothing when it cannot be read: the page says why. */
static void learn(struct view_segment *segment, int fd)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	const struct weft_segment_info *info;
	struct weft_segment *seg = NULL;

	segment->live = fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
	segment->events = segment->first_ns = segment->last_ns = 0;
	segment->readable = weft__segment_open_fd(&seg, fd, segment->path, NULL) == 0;
	if (!segment->readable)
		return;
	info = weft_segment_info(seg);
	segment->events = info->n_events;
	segment->first_ns = info->first_ns;
	segment->last_ns = info->last_ns;
	weft_segment_close(seg);
}

static int look_at(struct view_files *files, const char *path, int flags)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | flags);
	struct view_segment *segment;
	struct stat st;
	uint64_t changed_ns;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		if (fd >= 0)
			close(fd);
		return 0;
	}
	segment = segment_get(files, path);
	if (segment) {
		changed_ns = (uint64_t)st.st_mtim.tv_sec * 1000000000u + (uint64_t)st.st_mtim.tv_nsec;
		bool changed = segment->bytes != (uint64_t)st.st_size || segment->inode != (uint64_t)st.st_ino ||
			       segment->device != (uint64_t)st.st_dev || segment->changed_ns != changed_ns;

		if (!segment->was_there || segment->live || changed) {
			bool was_live = segment->live;

			files->turns += changed;
			segment->named = !(flags & O_NOFOLLOW);
			segment->bytes = (uint64_t)st.st_size;
			segment->device = (uint64_t)st.st_dev;
			segment->inode = (uint64_t)st.st_ino;
			segment->changed_ns = changed_ns;
			learn(segment, fd);
			files->turns += was_live != segment->live;
		}
		segment->there = true;
	}
	close(fd);
	return segment ? 0 : -ENOMEM;
}

/* Links in a directory are not followed. */
static int look_in(struct view_files *files, const char *path, DIR *dir)
{
	size_t bytes = strlen(path) + 260;
	char *file = weft__alloc(bytes);
	struct dirent *entry;
	int rc = file ? 0 : -ENOMEM;

	while (rc == 0 && (entry = readdir(dir))) {
		if (!ends_in(entry->d_name, ".weft") && !ends_in(entry->d_name, ".weft.active"))
			continue;
		snprintf(file, bytes, "%s/%s", path, entry->d_name);
		rc = look_at(files, file, O_NOFOLLOW);
	}
	weft__free(file);
	return rc;
}

int view_files_look(struct view_files *files)
{
	size_t i, n = files->n;
	int k, rc = 0;

	for (i = 0; i < n; i++) {
		files->at[i].was_there = files->at[i].there;
		files->at[i].there = false;
	}
	for (k = 0; k < files->n_paths && rc == 0; k++) {
		DIR *dir = opendir(files->paths[k]);

		rc = dir ? look_in(files, files->paths[k], dir) : look_at(files, files->paths[k], 0);
		if (dir)
			closedir(dir);
	}
	for (i = 0; i < n && rc == 0; i++)
		files->turns += files->at[i].was_there && !files->at[i].there;
	return rc;
}

/* Of a file that is no segment, however large, the beginning is enough. */
static uint64_t given_bytes(const struct view_segment *segment, uint64_t bytes)
{
	return segment->readable || bytes < UNREADABLE_BYTES ? bytes : UNREADABLE_BYTES;
}

static void segment_json(struct weft__json *json, const struct view_segment *segment, size_t id, uint64_t start_ns)
{
	char version[80];

	snprintf(version, sizeof(version), "%llx-%llx-%llx", (unsigned long long)segment->inode,
		 (unsigned long long)segment->bytes, (unsigned long long)segment->changed_ns);
	weft__json_begin(json, NULL, '{');
	weft__json_u64(json, "id", id);
	weft__json_text(json, "name", segment->name);
	weft__json_u64(json, "bytes", given_bytes(segment, segment->bytes));
	weft__json_text(json, "version", version);
	weft__json_u64(json, "events", segment->events);
	weft__json_u64(json, "fromNs", segment->first_ns > start_ns ? segment->first_ns - start_ns : 0);
	weft__json_u64(json, "toNs", segment->last_ns > start_ns ? segment->last_ns - start_ns : 0);
	weft__json_bool(json, "live", segment->live);
	weft__json_end(json, '}');
}

int view_files_json(struct view_files *files, FILE *out)
{
	struct weft__json json = {.out = out};
	uint64_t start_ns = UINT64_MAX;
	char version[32];
	bool live = false;
	size_t i;

	for (i = 0; i < files->n; i++) {
		live |= files->at[i].there && files->at[i].live;
		if (files->at[i].there && files->at[i].events && files->at[i].first_ns < start_ns)
			start_ns = files->at[i].first_ns;
	}
	snprintf(version, sizeof(version), "%llu", (unsigned long long)files->turns);
	weft__json_begin(&json, NULL, '{');
	weft__json_begin(&json, "files", '[');
	for (i = 0; i < files->n; i++)
		if (files->at[i].there)
			segment_json(&json, &files->at[i], i, start_ns);
	weft__json_end(&json, ']');
	weft__json_bool(&json, "live", live);
	weft__json_text(&json, "version", version);
	weft__json_end(&json, '}');
	return 0;
}

int view_files_open(struct view_files *files, size_t index, uint64_t *bytes)
{
	const struct view_segment *segment;
	struct stat st;
	int fd;

	if (index >= files->n || !files->at[index].there)
		return -ENOENT;
	segment = &files->at[index];
	fd = open(segment->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | (segment->named ? 0 : O_NOFOLLOW));
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0 || (uint64_t)st.st_dev != segment->device || (uint64_t)st.st_ino != segment->inode) {
		close(fd);
		return -ENOENT; /* another file took its name */
	}
	*bytes = given_bytes(segment, (uint64_t)st.st_size);
	return fd;
}

void view_files_fini(struct view_files *files)
{
	size_t i;

	for (i = 0; i < files->n; i++)
		weft__free(files->at[i].path);
	weft__free(files->at);
	weft__intern_fini(&files->by_path);
	files->at = NULL;
	files->n = 0;
}
