/* SPDX-License-Identifier: Apache-2.0 */
/* Processes that ended before weft started in them. Each left a line in short-processes.txt of the directory: "PID
 * CPU_NS LIVED_NS NAME", or is one of N in a line "*N CPU_NS LIVED_NS NAME". A line "?N" has the number of those that
 * began and left no line. What is not such a line is passed over. */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "cli.h"
#include "print.h"
#include "report.h"

#define SHORT_BYTES_MAX (256 << 20) /* of the file: it may be anybody's */
#define SHORT_SHOWN 5               /* names in the text */
#define NOT_COUNTED "processes that a signal ended before weft started in them"

static void count_in(struct report_short *all, const char *name, uint64_t n, uint64_t cpu_ns)
{
	struct report_short_name *at = NULL;
	size_t i;

	all->n += n;
	all->cpu_ns += cpu_ns;
	for (i = 0; i < all->n_names && !at; i++)
		if (strcmp(all->names[i].name, name) == 0)
			at = &all->names[i];
	if (!at && all->n_names < REPORT_SHORT_NAMES) {
		at = &all->names[all->n_names++];
		snprintf(at->name, sizeof(at->name), "%s", name);
	}
	if (at) {
		at->n += n;
		at->cpu_ns += cpu_ns;
	}
}

static void read_file(struct report_short *all, FILE *file)
{
	char line[256], name[64], end;
	unsigned long long number, cpu_ns, lived_ns;

	while (ftell(file) < SHORT_BYTES_MAX && fgets(line, sizeof(line), file)) {
		bool many = line[0] == '*';

		if (sscanf(line, "?%llu%c", &number, &end) == 2 && end == '\n') {
			all->unheard += number;
			all->asked = true;
			continue;
		}
		if (sscanf(line + many, "%llu %llu %llu %63[!-~]%c", &number, &cpu_ns, &lived_ns, name, &end) == 5 &&
		    end == '\n')
			count_in(all, name, many ? number : 1, cpu_ns);
	}
}

static int most_first(const void *a, const void *b)
{
	const struct report_short_name *x = a, *y = b;

	return x->n != y->n ? (x->n < y->n ? 1 : -1) : strcmp(x->name, y->name);
}

void report_short_load(struct report_short *all, int n_paths, char **paths)
{
	char path[PATH_MAX];
	struct stat st;
	int i, fd;

	for (i = 0; i < n_paths; i++) {
		FILE *file;

		snprintf(path, sizeof(path), "%s/" REPORT_SHORT_FILE, paths[i]);
		fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
		if (fd < 0)
			continue;
		file = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ? fdopen(fd, "r") : NULL;
		if (!file) {
			close(fd);
			continue;
		}
		read_file(all, file);
		fclose(file);
	}
	qsort(all->names, all->n_names, sizeof(all->names[0]), most_first);
}

bool report_short_only(const struct report_short *all, int n_paths, char **paths)
{
	static const char *const patterns[] = {"%s/*.weft", "%s/*.weft.active"};
	char pattern[PATH_MAX];
	bool other = false;
	glob_t found;
	struct stat st;
	int i;
	size_t k;

	for (i = 0; i < n_paths && (all->n || all->unheard); i++) {
		other |= stat(paths[i], &st) < 0 || !S_ISDIR(st.st_mode);
		for (k = 0; k < 2 && !other; k++) {
			snprintf(pattern, sizeof(pattern), patterns[k], paths[i]);
			other = glob(pattern, GLOB_NOSORT, NULL, &found) == 0;
			if (other)
				globfree(&found);
		}
	}
	return (all->n || all->unheard) && !other;
}

static void say_names(const struct report_short *all)
{
	char figure[CLI_FIGURE], count[CLI_FIGURE];
	size_t i;

	printf("%s process%s ended before weft started in %s, with %s of CPU%s (", cli_count(all->n, count),
	       all->n == 1 ? "" : "es", all->n == 1 ? "it" : "them", cli_ns(all->cpu_ns, figure),
	       all->n == 1 ? "" : " together");
	for (i = 0; i < all->n_names && i < SHORT_SHOWN; i++)
		printf("%s%s %s", i ? ", " : "", cli_safe(all->names[i].name), cli_count(all->names[i].n, count));
	puts(i < all->n_names ? ", ...)" : ")");
}

void report_short_text(const struct report_short *all)
{
	char count[CLI_FIGURE];

	if (all->n)
		say_names(all);
	if (all->unheard)
		printf("%s process%s began without weft starting in %s or an exit: a signal ended %s, or %s still "
		       "run%s\n",
		       cli_count(all->unheard, count), all->unheard == 1 ? "" : "es", all->unheard == 1 ? "it" : "them",
		       all->unheard == 1 ? "it" : "them", all->unheard == 1 ? "it" : "they",
		       all->unheard == 1 ? "s" : "");
	if (all->n && !all->asked)
		puts("not counted: " NOT_COUNTED);
	if (all->n || all->unheard)
		puts("weft run --start-after 0 records such processes, too");
}

void report_short_json(struct weft__json *json, const struct report_short *all)
{
	size_t i;

	weft__json_begin(json, "short_processes", '{');
	weft__json_u64(json, "count", all->n);
	weft__json_u64(json, "cpu_ns", all->cpu_ns);
	weft__json_begin(json, "programs", '[');
	for (i = 0; i < all->n_names; i++) {
		weft__json_begin(json, NULL, '{');
		weft__json_text(json, "name", all->names[i].name);
		weft__json_u64(json, "count", all->names[i].n);
		weft__json_u64(json, "cpu_ns", all->names[i].cpu_ns);
		weft__json_end(json, '}');
	}
	weft__json_end(json, ']');
	if (all->asked) {
		weft__json_u64(json, "no_end_seen", all->unheard);
	} else {
		weft__json_absent(json, "no_end_seen", "the directory has no such count");
		weft__json_text(json, "not_counted", NOT_COUNTED);
	}
	weft__json_end(json, '}');
}

void report_short_alone(const struct report_short *all, bool as_json)
{
	struct weft__json json = {.out = stdout};

	if (!as_json) {
		report_short_text(all);
		return;
	}
	weft__json_begin(&json, NULL, '{');
	weft__json_u64(&json, "version", 1);
	weft__json_begin(&json, "recordings", '[');
	weft__json_end(&json, ']');
	report_short_json(&json, all);
	weft__json_end(&json, '}');
}
