/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration file: lines "ship_to = s3://..." with the names of variables, in small letters and without WEFT_.
 * Lines that begin with '#' are comments. CALLER.
 *
 * What is in it decides where data is sent, so it has to be this user's or root's, and nobody else may write to it. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "record/options.h"

#define CONFIG_PATH "/etc/weft.conf"
#define CONFIG_MOST 65536
#define END_MARK 1 /* behind the zero byte of the last line */

const char *weft__config_path(void)
{
	const char *path = getenv("WEFT_CONFIG");

	return path && *path ? path : CONFIG_PATH;
}

static int config_allowed(int fd, struct weft_error *err)
{
	struct stat st;

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return weft__fail(err, 0, "%s: not a regular file; it is not used", weft__config_path());
	if ((st.st_uid != 0 && st.st_uid != geteuid()) || (st.st_mode & (S_IWGRP | S_IWOTH)))
		return weft__fail(err, 0, "%s: others may change it; it is not used: run chmod go-w on it, or chown",
				  weft__config_path());
	return 1;
}

char *weft__config_read(struct weft_error *err)
{
	int fd = open(weft__config_path(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	ssize_t n = -1, i;
	char *text;

	if (fd < 0) {
		if (errno != ENOENT || getenv("WEFT_CONFIG"))
			weft__fail(err, -errno, "%s: %s", weft__config_path(), weft_strerror(-errno));
		return NULL;
	}
	text = config_allowed(fd, err) ? weft__alloc(CONFIG_MOST) : NULL;
	if (text)
		n = read(fd, text, CONFIG_MOST - 2);
	close(fd);
	if (n < 0) {
		weft__free(text);
		return NULL;
	}
	for (i = 0; i < n; i++)
		if (text[i] == '\n' || text[i] == END_MARK)
			text[i] = 0;
	text[n] = 0;
	text[n + 1] = END_MARK;
	return text;
}

/* The value, if the line is of that variable: "name = value", by either of its names. */
static char *config_value(char *line, const char *variable)
{
	const char *name = variable + 5; /* behind WEFT_ */
	size_t i = 0;
	char *end;

	line += strspn(line, " \t");
	if (!strncmp(line, "WEFT_", 5))
		line += 5;
	while (name[i] && toupper((unsigned char)line[i]) == name[i])
		i++;
	if (name[i])
		return NULL;
	line += i + strspn(line + i, " \t");
	if (*line++ != '=')
		return NULL;
	line += strspn(line, " \t");
	for (end = line + strlen(line); end > line && strchr(" \t\r", end[-1]); end--)
		end[-1] = 0;
	return line;
}

const char *weft__config_get(const char *config, const char *variable)
{
	char *at = (char *)(uintptr_t)config;
	const char *value;

	for (; at && *at != END_MARK; at += strlen(at) + 1)
		if ((value = config_value(at, variable)))
			return value;
	return NULL;
}

int weft__config_next(const char *config, const char **at, char *name, size_t bytes)
{
	const char *line = *at ? *at : config;

	while (line && *line != END_MARK) {
		const char *from = line + strspn(line, " \t"), *equals = strchr(from, '=');
		size_t n = equals ? (size_t)(equals - from) : 0;

		line += strlen(line) + 1;
		while (n && strchr(" \t", from[n - 1]))
			n--;
		if (!n || *from == '#')
			continue;
		snprintf(name, bytes, "%.*s", (int)n, from);
		*at = line;
		return 1;
	}
	return 0;
}
