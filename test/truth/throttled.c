/* SPDX-License-Identifier: Apache-2.0 */
/* Ticks of 10 ms of CPU time in a group that may use an eighth of a CPU: what they lose to that is not the
 * program's, and is said to be the group's limit. */
#include "truth.h"
#include <errno.h>
#include <sys/stat.h>
#include <sys/wait.h>

static char dir[256], home[256];
static int v2;

static int put(const char *folder, const char *file, const char *text)
{
	char path[600];
	int fd, n;

	snprintf(path, sizeof(path), "%s/%s", folder, file);
	fd = open(path, O_WRONLY);
	n = fd < 0 ? -1 : (int)write(fd, text, strlen(text));
	close(fd);
	return n < 0 ? -1 : 0;
}

static long long throttled_ns(void)
{
	char path[600], text[1024] = "", *at;
	int fd;

	snprintf(path, sizeof(path), "%s/cpu.stat", dir);
	fd = open(path, O_RDONLY);
	if (read(fd, text, sizeof(text) - 1) < 0)
		text[0] = 0;
	close(fd);
	at = strstr(text, v2 ? "throttled_usec " : "throttled_time ");
	return at ? atoll(strchr(at, ' ')) * (v2 ? 1000 : 1) : -1;
}

/* The kernel counts what a CPU was withheld when it gives it back: after a pause in which every CPU has its quota
 * again. */
static long long settled_ns(void)
{
	truth_nap(100 * MS);
	return throttled_ns();
}

static void ticks(void)
{
	int loop = truth_loop(), tick;
	long long before;

	for (tick = 0; tick < 2;
	     tick++) { /* the recording begins here, uses some of the quota, and reads the count for the first time */
		truth_next(loop);
		truth_burn(10 * MS);
	}
	before = settled_ns();
	for (tick = 0; tick < 8; tick++) {
		truth_next(loop);
		struct truth_poll *poll = truth_begin("throttled");
		truth_burn(10 * MS);
		truth_end(poll);
	}
	truth_next(loop);
	truth_note("\"throttled_before\": %lld", before);
	truth_note("\"throttled\": %lld", settled_ns() - before);
	put(home, "cgroup.procs", "0");
	truth_print();
}

int main(int argc, char **argv)
{
	pid_t child;

	v2 = access("/sys/fs/cgroup/cgroup.controllers", F_OK) == 0;
	snprintf(home, sizeof(home), "%s", v2 ? "/sys/fs/cgroup" : "/sys/fs/cgroup/cpu");
	snprintf(dir, sizeof(dir), "%.200s/weft-truth-%d", home, (int)(argc > 1 ? getppid() : getpid()));
	if (argc > 1) { /* a process that begins in the group */
		ticks();
		return 0;
	}
	if (mkdir(dir, 0755))
		truth_skip("no CPU control group can be made here");
	if (v2 ? put(dir, "cpu.max", "5000 40000")
	       : put(dir, "cpu.cfs_period_us", "40000") || put(dir, "cpu.cfs_quota_us", "5000")) {
		rmdir(dir);
		truth_skip("CPU control groups have no limit here");
	}
	child = fork();
	if (child == 0) {
		if (put(dir, "cgroup.procs", "0"))
			truth_skip("the CPU control group cannot be used here");
		execl("/proc/self/exe", argv[0], "inside", NULL);
		_exit(1);
	}
	waitpid(child, NULL, 0);
	while (rmdir(dir) && errno == EBUSY)
		truth_nap(MS);
	return 0;
}
