/* SPDX-License-Identifier: Apache-2.0 */
/* Burns CPU time in functions of known names, in segments of its own making: symbolize_program SEGMENTS. Options
 * come from the environment. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <weft/weft.h>

static volatile uint64_t sink;

__attribute__((always_inline)) static inline void spin_inlined(void)
{
	for (int i = 0; i < 20000; i++)
		sink += sink * 31 + (uint64_t)i;
}

__attribute__((noinline)) static void burn_in_this_function(double seconds)
{
	clock_t end = clock() + (clock_t)(seconds * CLOCKS_PER_SEC);

	while (clock() < end)
		spin_inlined();
}

static void read_name(char name[32], const char *task)
{
	char path[300];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/%s/comm", task);
	file = fopen(path, "r");
	if (!file || !fgets(name, 32, file))
		name[0] = 0;
	if (file)
		fclose(file);
}

/* Whether no thread makes tables for stacks, nor is there one that has hardly begun and has the name of the program
 * yet. */
static int settled(void)
{
	char own[32], name[32], task[280];
	DIR *tasks = opendir("/proc/self/task");
	struct dirent *entry;
	int n_own = 0, n_tables = 0;

	read_name(own, ".");
	while (tasks && (entry = readdir(tasks))) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(task, sizeof(task), "task/%s", entry->d_name);
		read_name(name, task);
		n_own += *name && strcmp(name, own) == 0;
		n_tables += strcmp(name, "weft-tables\n") == 0;
	}
	if (tasks)
		closedir(tasks);
	return n_own <= 1 && !n_tables;
}

int main(int argc, char **argv)
{
	struct timespec pause = {0, 1000000};
	time_t begun = time(NULL);
	struct weft_recorder *rec = NULL;
	struct weft_error err;
	int n = argc > 1 ? atoi(argv[1]) : 1;

	if (weft_recorder_open_env(&rec, NULL, &err) != 0 || weft_recorder_start(rec, &err) < 0) {
		fprintf(stderr, "%s\n", err.msg);
		return 1;
	}
	while (!settled() && time(NULL) - begun < 60) /* on a busy machine that is later than the first samples */
		nanosleep(&pause, NULL);
	for (int i = 0; i < n; i++) {
		weft_poll_begin((uint64_t)i + 1, WEFT_DEPTH_UNKNOWN);
		burn_in_this_function(0.25);
		weft_poll_end();
		if (i + 1 < n && weft_recorder_rotate(rec, NULL, 0, NULL) < 0)
			return 1;
	}
	return weft_recorder_close(rec, NULL) < 0;
}
