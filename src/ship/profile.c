/* SPDX-License-Identifier: Apache-2.0 */
#include "ship/profile.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"

#define FILE_MOST 65536
#define SPACE " \t\r"

/* Whether the line, which begins behind its '[', names that section. */
static int is_section(const char *line, size_t n, const char *section)
{
	const char *close = memchr(line, ']', n);
	size_t length;

	if (!close)
		return 0;
	length = (size_t)(close - line);
	while (length && strchr(SPACE, *line))
		line++, length--;
	while (length && strchr(SPACE, line[length - 1]))
		length--;
	return length == strlen(section) && !memcmp(line, section, length);
}

/* The value, if the line is of that key. 1: it was taken; 0: it was not. */
static int take_value(const char *line, size_t n, const char *key, char *to, size_t bytes)
{
	size_t k = strlen(key), at = k;

	if (n < k || memcmp(line, key, k) != 0)
		return 0;
	at += strspn(line + at, SPACE);
	if (at >= n || line[at] != '=')
		return 0;
	at++;
	while (at < n && strchr(SPACE, line[at]))
		at++;
	while (n > at && strchr(SPACE, line[n - 1]))
		n--;
	if (n - at >= bytes)
		return 0;
	memcpy(to, line + at, n - at);
	to[n - at] = 0;
	return 1;
}

int weft__profile_text(const char *text, const char *section, const char *key, char *to, size_t bytes)
{
	int inside = 0;

	while (*text) {
		size_t n = strcspn(text, "\n");

		if (*text == '[')
			inside = is_section(text + 1, n - 1, section);
		else if (inside && take_value(text, n, key, to, bytes))
			return 1;
		text += n + (text[n] == '\n');
	}
	return 0;
}

static ssize_t read_some(const char *path, char *to, size_t bytes)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	ssize_t n = 0, got = 0;

	if (fd < 0)
		return -1;
	while ((size_t)n < bytes - 1 && (got = read(fd, to + n, bytes - 1 - (size_t)n)) > 0)
		n += got;
	close(fd);
	to[n] = 0;
	return got < 0 ? -1 : n;
}

int weft__profile_get(const char *path, const char *section, const char *key, char *to, size_t bytes)
{
	char *text = weft__alloc(FILE_MOST);
	int found = text && read_some(path, text, FILE_MOST) > 0 && weft__profile_text(text, section, key, to, bytes);

	if (text)
		explicit_bzero(text, FILE_MOST);
	weft__free(text);
	return found;
}

int weft__small_file(const char *path, char *to, size_t bytes)
{
	ssize_t n = read_some(path, to, bytes);

	while (n > 0 && strchr(SPACE "\n", to[n - 1]))
		to[--n] = 0;
	return n > 0;
}
