/* SPDX-License-Identifier: Apache-2.0 */
/* Lists its descriptors again and again, while threads come and go. What is listed must always be what it opened, and
 * a file that it opens must have the lowest free number. With "loop" it waits in turns, as a loop does. Usage:
 * run_listed MS [loop] */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
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

/* The same without the C library's streams of directories, and by asking for each number. */
static void list_closely(void)
{
	int dir = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char buf[4096], name[16];
	ssize_t n;

	while ((n = getdents64(dir, buf, sizeof(buf))) > 0)
		for (ssize_t at = 0; at < n;) {
			struct dirent64 *entry = (struct dirent64 *)(void *)(buf + at);

			if (entry->d_name[0] != '.' && atoi(entry->d_name) > 2 && atoi(entry->d_name) != dir)
				say("listed closely", entry->d_name);
			at += entry->d_reclen;
		}
	close(dir);
	for (int fd = FIRST; fd < 5000; fd++)
		if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF) {
			snprintf(name, sizeof(name), "%d", fd);
			say("open", name);
		}
}

static void *compute(void *data)
{
	spin(5 * MS);
	return data;
}

int main(int argc, char **argv)
{
	uint64_t until;
	int turns = 0, loops = argc > 2 && !strcmp(argv[2], "loop");

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
		if (loops) {
			poll(&(struct pollfd){.fd = 0, .events = POLLPRI}, 1, 1);
			if (turns % 32 == 0)
				list_closely();
		}
		if (made)
			pthread_join(thread, NULL);
	}
	puts(bad ? "bad" : turns < (loops ? 10 : 100) ? "too few" : "good");
	return bad != 0;
}
