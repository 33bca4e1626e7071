/* SPDX-License-Identifier: Apache-2.0 */
#include "ship/process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"

#define STACK_BYTES ((size_t)64 << 10)
#define MOST_NS (60 * UINT64_C(1000000000))
#define TURN_MS 50

/* What the new process needs, all made before it is there: until exec it has the memory of this one. */
struct start {
	const char *command;
	char **env;
	int out, null;
};

static int start_main(void *data)
{
	const struct start *start = data;
	char *args[] = {"sh", "-c", (char *)(uintptr_t)start->command, NULL};
	struct sigaction plain = {.sa_handler = SIG_DFL};
	sigset_t none;
	int i;

	for (i = 1; i < NSIG; i++)
		sigaction(i, &plain, NULL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	setpgid(0, 0);
	if (dup2(start->null, 0) == 0 && dup2(start->out, 1) == 1 && dup2(start->null, 2) == 2)
		syscall(SYS_execve, "/bin/sh", args, start->env); /* execve may be the preload library's */
	_exit(127);
}

/* Without what would record that program, too. */
static char **clean_environment(void)
{
	size_t n = 0, kept = 0, i;
	char **env;

	while (environ && environ[n])
		n++;
	env = weft__calloc(n + 1, sizeof(*env));
	for (i = 0; env && i < n; i++)
		if (strncmp(environ[i], "LD_PRELOAD=", 11) != 0 && strncmp(environ[i], "WEFT_", 5) != 0)
			env[kept++] = environ[i];
	return env;
}

/* The number of the process; no signal is sent when it ends. */
static pid_t start_process(struct start *start)
{
	char *stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
	pid_t pid;
	int saved;

	if (stack == MAP_FAILED)
		return -ENOMEM;
	pid = clone(start_main, stack + STACK_BYTES, CLONE_VM | CLONE_VFORK, start);
	saved = errno;
	munmap(stack, STACK_BYTES);
	return pid < 0 ? -saved : pid;
}

/* Until the end of the output. 0 or a negative error. */
static int read_all(const struct weft__http *http, int fd, char *to, size_t bytes)
{
	uint64_t end = weft__clock_mono() + MOST_NS;
	size_t at = 0;

	for (;;) {
		struct pollfd wait = {.fd = fd, .events = POLLIN};
		ssize_t n;

		if (http && weft__http_stopped(http))
			return -ECANCELED;
		if (weft__clock_mono() > end)
			return -ETIMEDOUT;
		if (poll(&wait, 1, TURN_MS) <= 0)
			continue;
		n = read(fd, to + at, bytes - 1 - at);
		if (n <= 0) {
			to[at] = 0;
			return n < 0 ? -errno : 0;
		}
		at += (size_t)n;
		if (at == bytes - 1)
			return -E2BIG;
	}
}

static int finish(pid_t pid, int r, struct weft_error *err)
{
	int status = 0;

	if (r)
		kill(-pid, SIGKILL);
	while (waitpid(pid, &status, __WALL) < 0 && errno == EINTR)
		;
	if (r)
		return r == -ECANCELED ? r : weft__fail(err, r, "it was ended: %s", weft_strerror(r));
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		return weft__fail(err, -EACCES, "it ended with status %d",
				  WIFEXITED(status) ? WEXITSTATUS(status) : -1);
	return 0;
}

int weft__process_read(const struct weft__http *http, const char *command, char *to, size_t bytes,
		       struct weft_error *err)
{
	struct start start = {.command = command, .env = clean_environment(), .out = -1};
	int ends[2] = {-1, -1}, r = 0;
	pid_t pid;

	start.null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (getauxval(AT_SECURE))
		r = weft__fail(err, -EPERM, "not run in a program with more rights than its user's");
	else if (!start.env || start.null < 0 || pipe2(ends, O_CLOEXEC) < 0)
		r = weft__fail(err, -EMFILE, "it cannot be started: no memory or no descriptors");
	start.out = ends[1];
	pid = r ? 0 : start_process(&start);
	if (ends[1] >= 0)
		close(ends[1]);
	if (pid < 0)
		r = weft__fail(err, (int)pid, "it cannot be started: %s", weft_strerror((int)pid));
	if (pid > 0)
		r = finish(pid, read_all(http, ends[0], to, bytes), err);
	if (ends[0] >= 0)
		close(ends[0]);
	if (start.null >= 0)
		close(start.null);
	weft__free(start.env);
	return r;
}
