/* SPDX-License-Identifier: Apache-2.0 */
/* run_space size|lock|little|limit [recorded]: address space of a small program. With "recorded" it waits until weft
 * records it.
 *
 * size: the most that it had, in KiB. lock: what mlockall() locked, in KiB, and the ms that this took. little: the same
 * without privilege, where 8 MiB may be locked, and what is locked after another 2 MiB. limit: allocates most of what
 * it is allowed to have. */
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define ALLOWED (UINT64_C(256) << 20)
#define WEFTS (UINT64_C(64) << 20)
#define REST (UINT64_C(16) << 20) /* the C library's and the program's own */
#define THREADS 40

static unsigned long field(const char *name)
{
	char line[256];
	unsigned long kib = 0;
	FILE *file = fopen("/proc/self/status", "re");

	while (file && fgets(line, sizeof(line), file))
		if (!strncmp(line, name, strlen(name)))
			kib = strtoul(line + strlen(name) + 1, NULL, 10);
	if (file)
		fclose(file);
	return kib;
}

static int has_thread(const char *name)
{
	DIR *dir = opendir("/proc/self/task");
	struct dirent *entry;
	int found = 0;

	while (dir && (entry = readdir(dir))) {
		char path[300], comm[32] = "";
		int fd;

		snprintf(path, sizeof(path), "/proc/self/task/%s/comm", entry->d_name);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd >= 0 && read(fd, comm, sizeof(comm) - 1) > 0)
			found |= !strncmp(comm, name, strlen(name));
		if (fd >= 0)
			close(fd);
	}
	if (dir)
		closedir(dir);
	return found;
}

static double clock_s(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static unsigned long burn(double s)
{
	double end = clock_s(CLOCK_THREAD_CPUTIME_ID) + s;
	unsigned long now, most = 0;

	while (clock_s(CLOCK_THREAD_CPUTIME_ID) < end) {
		now = field("VmSize:");
		most = now > most ? now : most;
	}
	return most;
}

static void await_weft(void)
{
	double end = clock_s(CLOCK_MONOTONIC) + 30;

	while (!has_thread("weft-collector"))
		if (clock_s(CLOCK_MONOTONIC) > end) {
			puts("no collector");
			exit(1);
		}
}

static void *allocate(void *data)
{
	void *volatile at = malloc(100);

	free(at);
	return data;
}

static int lock(void)
{
	double begin = clock_s(CLOCK_MONOTONIC);
	pthread_t threads[THREADS];
	int n = 0;

	if (mlockall(MCL_CURRENT | MCL_FUTURE) < 0)
		return puts("refused") < 0;
	printf("%lu %.0f\n", field("VmLck:"), (clock_s(CLOCK_MONOTONIC) - begin) * 1e3);
	munlockall(); /* stacks of threads are large, and there is not so much memory everywhere */
	while (n < THREADS && pthread_create(&threads[n], NULL, allocate, NULL) == 0)
		n++;
	for (int i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
	return n < THREADS;
}

static int little(void)
{
	struct rlimit few = {8 << 20, 8 << 20};
	unsigned long locked;
	char *volatile more;

	if (setrlimit(RLIMIT_MEMLOCK, &few) < 0 || (geteuid() == 0 && setuid(65534) < 0))
		return 2;
	if (mlockall(MCL_CURRENT | MCL_FUTURE) < 0)
		return puts("refused 0") < 0;
	locked = field("VmLck:");
	burn(0.3); /* weft may map more meanwhile */
	more = malloc(2 << 20);
	printf("%lu %lu\n", locked, more ? field("VmLck:") : 0);
	return 0;
}

static int limit(void)
{
	char *volatile at = malloc(ALLOWED - WEFTS - REST);

	if (!at)
		return puts("malloc failed") != 0;
	at[0] = 1;
	puts("allocated");
	free(at);
	return 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "size";
	struct rlimit allowed = {ALLOWED, ALLOWED};
	unsigned long most;

	if (!strcmp(what, "limit") && setrlimit(RLIMIT_AS, &allowed) < 0)
		return 2;
	if (argc > 2)
		await_weft();
	most = burn(0.3);
	if (!strcmp(what, "little"))
		return little();
	if (!strcmp(what, "lock"))
		return lock();
	if (!strcmp(what, "limit"))
		return limit();
	printf("%lu\n", most);
	return 0;
}
