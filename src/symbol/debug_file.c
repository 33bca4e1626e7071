/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol/debug_file.h"

#include <errno.h>
#include <libdeflate.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"

/* The next of the directories, or false. */
static bool next_dir(const char **dirs, int *ret_n, const char **ret)
{
	size_t n;

	while (**dirs == ':')
		++*dirs;
	n = strcspn(*dirs, ":");
	*ret = *dirs;
	*ret_n = (int)(n > PATH_MAX ? PATH_MAX : n);
	*dirs += n;
	return n > 0;
}

int weft__debug_file_by_build(struct weft__elf_image *debug, const char *dirs, const uint8_t *build_id, uint32_t n)
{
	char hex[2 * 64 + 1], path[PATH_MAX];
	const char *dir;
	uint32_t i;
	int dir_n;

	if (n < 2 || n > 64)
		return -ENOENT;
	for (i = 0; i < n; i++)
		snprintf(hex + 2 * (size_t)i, 3, "%02x", build_id[i]);
	while (next_dir(&dirs, &dir_n, &dir)) {
		snprintf(path, sizeof(path), "%.*s/.build-id/%.2s/%s.debug", dir_n, dir, hex, hex + 2);
		if (weft__elf_image_open(debug, "", path) < 0)
			continue;
		if (weft__elf_image_is_build(debug, build_id, n))
			return 0;
		weft__elf_image_close(debug);
	}
	return -ENOENT;
}

static bool has_checksum(int fd, uint32_t wanted)
{
	uint32_t sum = libdeflate_crc32(0, NULL, 0);
	unsigned char bytes[16384];
	off_t at = 0;
	ssize_t n;

	while ((n = pread(fd, bytes, sizeof(bytes), at)) > 0) {
		sum = libdeflate_crc32(sum, bytes, (size_t)n);
		at += n;
	}
	return n == 0 && sum == wanted;
}

struct link {
	const char *name;
	uint32_t checksum;
	const uint8_t *build_id;
	uint32_t build_id_n;
};

static bool read_link(struct link *link, const struct weft__elf_image *image)
{
	Elf_Data *data = weft__elf_image_section(image, ".gnu_debuglink");
	const uint8_t *bytes = data ? data->d_buf : NULL;
	const uint8_t *end = bytes ? memchr(bytes, 0, data->d_size) : NULL;
	size_t at;

	if (!end || end == bytes)
		return false;
	at = ((size_t)(end - bytes) + 4) & ~(size_t)3; /* the name's 0 and up to 3 more */
	if (at + 4 > data->d_size)
		return false;
	link->name = (const char *)bytes;
	link->checksum = get_u32(bytes + at);
	link->build_id_n = weft__elf_image_build_id(image, &link->build_id);
	return !strchr(link->name, '/');
}

static bool try_open(struct weft__elf_image *debug, const struct link *link, const char *path)
{
	if (weft__elf_image_open(debug, "", path) < 0)
		return false;
	if (link->build_id_n && weft__elf_image_is_build(debug, link->build_id, link->build_id_n))
		return true;
	if (has_checksum(debug->fd, link->checksum))
		return true;
	weft__elf_image_close(debug);
	return false;
}

int weft__debug_file_by_link(struct weft__elf_image *debug, const char *root, const char *dirs,
			     const struct weft__elf_image *image, const char *path)
{
	const char *slash = strrchr(path, '/'), *dir;
	int n = slash ? (int)(slash - path) : 0, dir_n;
	char whole[PATH_MAX];
	struct link link;

	if (!slash || !read_link(&link, image))
		return -ENOENT;
	snprintf(whole, sizeof(whole), "%s%.*s/%s", root, n, path, link.name);
	if (try_open(debug, &link, whole))
		return 0;
	snprintf(whole, sizeof(whole), "%s%.*s/.debug/%s", root, n, path, link.name);
	if (try_open(debug, &link, whole))
		return 0;
	while (next_dir(&dirs, &dir_n, &dir)) {
		snprintf(whole, sizeof(whole), "%.*s%.*s/%s", dir_n, dir, n, path, link.name);
		if (try_open(debug, &link, whole))
			return 0;
	}
	return -ENOENT;
}
