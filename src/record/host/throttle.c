/* SPDX-License-Identifier: Apache-2.0 */
#include "record/host/throttle.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINE_BYTES 4096u
#define FILE_BYTES 1024u

/* A file, line by line, through a buffer of the caller's: /proc/self/mountinfo may have thousands of lines. */
struct lines {
	int fd;
	size_t at, n;
	char bytes[LINE_BYTES];
};

/* NULL: there are no more. What is longer than the buffer is left out. */
static char *next_line(struct lines *lines)
{
	bool skip = false;

	for (;;) {
		char *from = lines->bytes + lines->at, *end = memchr(from, '\n', lines->n - lines->at);
		ssize_t got;

		if (end) {
			*end = 0;
			lines->at = (size_t)(end - lines->bytes) + 1;
			if (!skip)
				return from;
			skip = false;
			continue;
		}
		lines->n -= lines->at;
		memmove(lines->bytes, from, lines->n);
		lines->at = 0;
		if (lines->n == sizeof(lines->bytes)) {
			lines->n = 0;
			skip = true;
		}
		got = read(lines->fd, lines->bytes + lines->n, sizeof(lines->bytes) - lines->n);
		if (got <= 0)
			return NULL;
		lines->n += (size_t)got;
	}
}

static bool lines_open(struct lines *lines, const char *path)
{
	lines->fd = open(path, O_RDONLY | O_CLOEXEC);
	lines->at = lines->n = 0;
	return lines->fd >= 0;
}

/* Whether a list like "cpu,cpuacct" has `word`. */
static bool has_word(const char *list, const char *word)
{
	size_t n = strlen(word);

	for (; list; list = strchr(list, ',') ? strchr(list, ',') + 1 : NULL)
		if (strncmp(list, word, n) == 0 && (list[n] == ',' || list[n] == 0))
			return true;
	return false;
}

/* The process' own cgroup in the hierarchy that has the cpu controller: "1:cpu,cpuacct:/path" or else "0::/path". */
static bool own_cgroup(const char *file, char *path, bool *v1)
{
	struct lines lines;
	char *line, *list, *at;

	path[0] = 0;
	*v1 = false;
	if (!lines_open(&lines, file))
		return false;
	while (!*v1 && (line = next_line(&lines))) {
		list = strchr(line, ':');
		at = list ? strchr(list + 1, ':') : NULL;
		if (!at)
			continue;
		*at++ = 0;
		*v1 = has_word(list + 1, "cpu");
		if ((*v1 || list[1] == 0) && strlen(at) < THROTTLE_PATH)
			memcpy(path, at, strlen(at) + 1);
	}
	close(lines.fd);
	/* Out of what its namespace shows there is nothing to be found. */
	return path[0] == '/' && strncmp(path, "/..", 3) != 0;
}

/* "\040" and the like, in place. */
static void unescape(char *text)
{
	char *to = text;

	for (; *text; to++)
		if (text[0] == '\\' && text[1] >= '0' && text[1] <= '3' && text[2] && text[3]) {
			*to = (char)((text[1] - '0') << 6 | (text[2] - '0') << 3 | (text[3] - '0'));
			text += 4;
		} else {
			*to = *text++;
		}
	*to = 0;
}

/* Of a line of mountinfo: the cgroup that is mounted, and where. */
static bool parse_mount(char *line, bool v1, char **root, char **point)
{
	char *save = NULL, *word = strtok_r(line, " ", &save), *type;
	int i;

	for (i = 0; word && i < 3; i++)
		word = strtok_r(NULL, " ", &save);
	*root = word;
	*point = word ? strtok_r(NULL, " ", &save) : NULL;
	while (word && strcmp(word, "-") != 0)
		word = strtok_r(NULL, " ", &save);
	type = word ? strtok_r(NULL, " ", &save) : NULL;
	if (!*point || !type || strcmp(type, v1 ? "cgroup" : "cgroup2") != 0)
		return false;
	strtok_r(NULL, " ", &save); /* what is mounted */
	word = strtok_r(NULL, " ", &save);
	if (v1 && !(word && has_word(word, "cpu")))
		return false;
	unescape(*root);
	unescape(*point);
	return true;
}

/* `path` below what is mounted: a container may see only its own cgroup, or only that is mounted. */
static const char *below_mount(const char *path, const char *root)
{
	size_t n = strcmp(root, "/") == 0 ? 0 : strlen(root);

	if (strncmp(path, root, n) == 0 && (path[n] == '/' || path[n] == 0))
		return path + n;
	return "";
}

static void find_cgroup(struct weft__throttle *t, const char *cgroup, const char *mountinfo)
{
	struct lines lines;
	char path[THROTTLE_PATH], *line, *root, *point;

	t->root[0] = 0;
	if (!own_cgroup(cgroup, path, &t->v1) || !lines_open(&lines, mountinfo))
		return;
	while ((line = next_line(&lines))) {
		if (!parse_mount(line, t->v1, &root, &point) || strlen(point) >= THROTTLE_PATH)
			continue;
		memcpy(t->root, point, strlen(point) + 1);
		snprintf(t->below, sizeof(t->below), "%s", below_mount(path, root));
		break;
	}
	close(lines.fd);
	while (t->below[0] && t->below[strlen(t->below) - 1] == '/')
		t->below[strlen(t->below) - 1] = 0;
}

/* The text of a file of the cgroup that is so many bytes of `below`. */
static bool read_of(const struct weft__throttle *t, size_t bytes, const char *file, char text[FILE_BYTES])
{
	char path[2 * THROTTLE_PATH + 32];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "%s%.*s/%s", t->root, (int)bytes, t->below, file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, text, FILE_BYTES - 1);
	close(fd);
	text[n > 0 ? n : 0] = 0;
	return n > 0;
}

/* False: there is no limit. */
static bool read_quota(const struct weft__throttle *t, size_t bytes, uint64_t *quota_us, uint64_t *period_us)
{
	char text[FILE_BYTES];

	if (t->v1) {
		if (!read_of(t, bytes, "cpu.cfs_quota_us", text) || text[0] == '-')
			return false;
		*quota_us = strtoull(text, NULL, 10);
		*period_us = read_of(t, bytes, "cpu.cfs_period_us", text) ? strtoull(text, NULL, 10) : 0;
	} else {
		char *end = text; /* "max 100000": no limit */

		*quota_us = read_of(t, bytes, "cpu.max", text) ? strtoull(text, &end, 10) : 0;
		*period_us = strtoull(end, NULL, 10);
	}
	return *quota_us && *period_us;
}

static uint64_t value_of(const char *text, const char *key)
{
	size_t n = strlen(key);

	for (; text; text = strchr(text, '\n') ? strchr(text, '\n') + 1 : NULL)
		if (strncmp(text, key, n) == 0 && text[n] == ' ')
			return strtoull(text + n, NULL, 10);
	return 0;
}

static bool read_stat(const struct weft__throttle *t, size_t bytes, struct weft__throttle_stat *stat)
{
	char text[FILE_BYTES];

	if (!read_of(t, bytes, "cpu.stat", text))
		return false;
	*stat = (struct weft__throttle_stat){.periods = value_of(text, "nr_periods"),
					     .times = value_of(text, "nr_throttled"),
					     .throttled_ns = t->v1 ? value_of(text, "throttled_time")
								   : 1000 * value_of(text, "throttled_usec")};
	return true;
}

/* "some avg10=0.00 avg60=0.00 avg300=0.00 total=123", in us. */
static uint64_t read_pressure(const struct weft__throttle *t)
{
	char text[FILE_BYTES], *total;

	if (t->v1 || !read_of(t, strlen(t->below), "cpu.pressure", text) || strncmp(text, "some ", 5) != 0)
		return 0;
	total = strstr(text, "total=");
	return total ? 1000 * strtoull(total + 6, NULL, 10) : 0;
}

static void find_levels(struct weft__throttle *t)
{
	size_t bytes = strlen(t->below);

	t->n_levels = 0;
	for (;;) {
		uint64_t quota_us, period_us;

		if (t->n_levels < THROTTLE_LEVELS && read_quota(t, bytes, &quota_us, &period_us) &&
		    read_stat(t, bytes, &t->levels[t->n_levels].last)) {
			t->levels[t->n_levels++].bytes = bytes;
			if (!t->quota_us ||
			    (double)quota_us * (double)t->period_us < (double)t->quota_us * (double)period_us) {
				t->quota_us = quota_us;
				t->period_us = period_us;
			}
		}
		if (bytes == 0)
			return;
		while (bytes > 0 && t->below[bytes - 1] != '/')
			bytes--;
		bytes -= bytes > 0;
	}
}

static void keep_counters(struct weft__throttle *t, const struct weft__throttle *before)
{
	int i, j;

	for (i = 0; i < t->n_levels; i++)
		for (j = 0; j < before->n_levels; j++)
			if (t->levels[i].bytes == before->levels[j].bytes)
				t->levels[i].last = before->levels[j].last;
	t->pressure_ns = before->pressure_ns;
	t->read_ns = before->read_ns;
}

bool weft__throttle_find(struct weft__throttle *t, const char *cgroup, const char *mountinfo, uint64_t now_ns)
{
	struct weft__throttle before = *t;
	bool changed;

	*t = (struct weft__throttle){.found_ns = now_ns};
	find_cgroup(t, cgroup, mountinfo);
	if (t->root[0])
		find_levels(t);
	if (t->n_levels && before.n_levels && strcmp(t->root, before.root) == 0 &&
	    strcmp(t->below, before.below) == 0) {
		keep_counters(t, &before);
	} else if (t->n_levels) {
		t->read_ns = now_ns;
		t->pressure_ns = read_pressure(t);
	}
	changed = t->quota_us != before.quota_us || t->period_us != before.period_us;
	return changed;
}

static uint64_t counter_more(uint64_t now, uint64_t before)
{
	return now > before ? now - before : 0;
}

bool weft__throttle_read(struct weft__throttle *t, uint64_t now_ns, struct weft__throttled *ret)
{
	struct weft__throttle_stat stat;
	uint64_t pressure_ns;
	int i;

	*ret = (struct weft__throttled){.span_ns = counter_more(now_ns, t->read_ns)};
	for (i = 0; i < t->n_levels; i++) {
		struct weft__throttle_stat *last = &t->levels[i].last;

		if (!read_stat(t, t->levels[i].bytes, &stat))
			continue;
		ret->more.periods += counter_more(stat.periods, last->periods);
		ret->more.times += counter_more(stat.times, last->times);
		ret->more.throttled_ns += counter_more(stat.throttled_ns, last->throttled_ns);
		*last = stat;
	}
	t->read_ns = now_ns;
	pressure_ns = t->n_levels ? read_pressure(t) : 0;
	ret->more.pressure_ns = counter_more(pressure_ns, t->pressure_ns);
	t->pressure_ns = pressure_ns;
	return ret->more.throttled_ns > 0;
}

void weft__throttle_facts(const struct weft__throttle *t, struct weft__defs *defs)
{
	char text[48];

	if (!t->quota_us)
		return;
	snprintf(text, sizeof(text), "%" PRIu64 " %" PRIu64, t->quota_us, t->period_us);
	weft__defs_fact(defs, "cgroup.cpu.max", text);
}
