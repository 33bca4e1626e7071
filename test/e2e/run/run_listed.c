/* SPDX-License-Identifier: Apache-2.0 */
/* Lists its descriptors again and again, while threads come and go. What is listed must always be what it opened, and
 * a file that it opens must have the lowest free number. Usage: run_listed MS */
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "times.h"

#define FIRST 3 /* behind the standard three */

static int bad;
static volatile uint64_t sink;

static void say(const char *what, const char *name)
{
	char path[300], to[256] = "";

	snprintf(path, sizeof(path), "/proc/self/fd/%s", name);
	(void)!readlink(path, to, sizeof(to) - 1);
	if (bad++ < 10)
		printf("%s: %s %s\n", what, name, to);
}

static void list(void)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;
	char name[16];

	if (!dir)
		exit(2);
	if (dirfd(dir) != FIRST) {
		snprintf(name, sizeof(name), "%d", dirfd(dir));
		say("opened as", name);
	}
	while ((entry = readdir(dir)))
		if (entry->d_name[0] != '.' && atoi(entry->d_name) > 2 && atoi(entry->d_name) != dirfd(dir))
			say("listed", entry->d_name);
	closedir(dir);
}

static void *compute(void *data)
{
	spin(5 * MS);
	return data;
}

int main(int argc, char **argv)
{
	uint64_t until;
	int turns = 0;

	closefrom(FIRST);
	list();
	/* Code of its own, for so much CPU time: listing is the kernel's, of which perf events see nothing. */
	while (now_ns(CLOCK_THREAD_CPUTIME_ID) < 250 * MS)
		for (uint64_t i = 0; i < 20000; i++)
			sink += i * i;
	until = now_ns(CLOCK_MONOTONIC) + (uint64_t)(argc > 1 ? atoi(argv[1]) : 1000) * MS;
	while (now_ns(CLOCK_MONOTONIC) < until) {
		pthread_t thread;
		int made = turns++ % 64 == 0 && pthread_create(&thread, NULL, compute, NULL) == 0;

		list();
		if (made)
			pthread_join(thread, NULL);
	}
	puts(bad ? "bad" : turns < 100 ? "too few" : "good");
	return bad != 0;
}
