/* SPDX-License-Identifier: Apache-2.0 */
/* Small processes, in a program that knows nothing of weft. Usage:
 *   run_small spin MS         uses so much CPU time and makes no call meanwhile
 *   run_small forks N         children that end at once, one after the other
 *   run_small killed N        children that a signal ends; one more fails to become another program, and ends
 *   run_small child MS        a child that uses so much CPU time, as this one does after it
 *   run_small dlopen LIBRARY  forks while another thread is in dlopen; the child makes calls that were never made before
 *   run_small import LIBRARY  children that load a library which makes a thread as it begins: none waits for itself
 *   run_small hurry           waits by poll and select for 1 ms at most: no thread of weft's is there then
 *   run_small polls           the same with a second: there is one
 *   run_small handler         uses CPU time in a signal handler that interrupted malloc; then outside of it
 *   run_small defaults        sets all realtime signals to their default, and uses CPU time
 *   run_small threads N       threads that use 2 ms of CPU time each, one after the other
 *   run_small light           whether there is a heap, and how many page tables weft's variables are in
 * It says "good", or what is not. */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int bad(const char *what)
{
	printf("%s\n", what);
	return 1;
}

static uint64_t cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

__attribute__((noinline)) static void burn_without_calls(long ms)
{
	uint64_t until = cpu_ns() + (uint64_t)ms * 1000000u;
	volatile uint64_t x = 0;

	while (cpu_ns() < until)
		for (int i = 0; i < 100000; i++)
			x = x + (uint64_t)i;
}

static int spin(long ms)
{
	burn_without_calls(ms);
	_exit(write(1, "good\n", 5) == 5 ? 0 : 1);
}

static int killed(int n)
{
	for (int i = 0; i <= n; i++) {
		int status;
		pid_t pid = fork();

		if (pid == 0 && i == n) {
			execl("/nowhere", "nowhere", NULL);
			_exit(errno == ENOENT ? 0 : 1);
		}
		if (pid == 0)
			raise(SIGKILL);
		if (pid < 0 || waitpid(pid, &status, 0) != pid)
			return bad("no child");
		if (i < n ? !WIFSIGNALED(status) : status != 0)
			return bad("it ended otherwise");
	}
	printf("good\n");
	return 0;
}

static int forks(int n)
{
	int i, status;

	for (i = 0; i < n; i++) {
		pid_t pid = fork();

		if (pid == 0)
			_exit(0);
		if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
			return bad("a child did not end well");
	}
	return puts("good") < 0;
}

static int child(long ms)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		burn_without_calls(ms);
		exit(0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
		return bad("the child did not end well");
	burn_without_calls(ms);
	return puts("good") < 0;
}

static void *load(void *path)
{
	return dlopen(path, RTLD_NOW);
}

static void *nothing(void *data)
{
	return data;
}

/* In the child: nothing here may wait for the loader, which nobody will ever let go. */
static int calls(void)
{
	struct iovec part = {"x", 1};
	struct epoll_event event = {.events = EPOLLIN};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
	struct timespec nap = {0, 1000000};
	int pair[2], ep = epoll_create1(0), i;
	pthread_t thread;
	struct pollfd fd;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0 || epoll_ctl(ep, EPOLL_CTL_ADD, pair[0], &event) < 0)
		return 1;
	fd = (struct pollfd){pair[0], POLLIN, 0};
	for (i = 0; i < 3; i++)
		if (epoll_wait(ep, &event, 1, 1) != 0 || poll(&fd, 1, 1) != 0)
			return 2;
	nanosleep(&nap, NULL);
	if (sendmsg(pair[1], &message, 0) != 1 || writev(pair[1], &part, 1) != 1 ||
	    epoll_wait(ep, &event, 1, 1000) != 1)
		return 3;
	if (pthread_create(&thread, NULL, nothing, NULL) != 0 || pthread_join(thread, NULL) != 0)
		return 4;
	burn_without_calls(80);
	nanosleep(&nap, NULL);
	return 0;
}

static int in_dlopen(const char *path)
{
	int says[2], waits[2], status;
	char text[16], byte;
	pthread_t thread;
	pid_t pid;

	if (pipe(says) < 0 || pipe(waits) < 0)
		return bad("no pipes");
	snprintf(text, sizeof(text), "%d", says[1]);
	setenv("RUN_SLOW_SAYS", text, 1);
	snprintf(text, sizeof(text), "%d", waits[0]);
	setenv("RUN_SLOW_WAITS", text, 1);
	if (pthread_create(&thread, NULL, load, (void *)(uintptr_t)path) != 0 || read(says[0], &byte, 1) != 1)
		return bad("no library");
	pid = fork();
	if (pid == 0) {
		alarm(30);
		_exit(calls());
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return bad("no child");
	if (write(waits[1], &byte, 1) != 1 || pthread_join(thread, NULL) != 0)
		return bad("the library did not begin");
	if (WIFSIGNALED(status))
		return bad("the child hung");
	return status == 0 ? puts("good") < 0 : bad("the child's calls went wrong");
}

#define IMPORTS 3

/* The best of some: the machine may be busy. */
static int import(const char *path)
{
	double best = 1e9;
	int i, status;

	for (i = 0; i < IMPORTS; i++) {
		struct timespec from, to;
		double ms;
		pid_t pid;

		clock_gettime(CLOCK_MONOTONIC, &from);
		pid = fork();
		if (pid == 0)
			_exit(dlopen(path, RTLD_NOW) ? 0 : 1);
		if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
			return bad("a child did not load the library");
		clock_gettime(CLOCK_MONOTONIC, &to);
		ms = (double)(to.tv_sec - from.tv_sec) * 1e3 + (double)(to.tv_nsec - from.tv_nsec) / 1e6;
		best = ms < best ? ms : best;
	}
	return best < 500 ? puts("good") < 0 : bad("it waited for itself");
}

static int threads(void)
{
	DIR *dir = opendir("/proc/self/task");
	int n = 0;

	while (dir && readdir(dir))
		n++;
	if (dir)
		closedir(dir);
	return n - 2;
}

/* What is waited for is there: only weft can make this slow. 100 us, or a second. */
static int polls(bool hurry)
{
	struct timespec spec = hurry ? (struct timespec){0, 100000} : (struct timespec){1, 0};
	int pair[2], i;

	if (pipe(pair) < 0 || write(pair[1], "x", 1) != 1)
		return bad("no pipe");
	for (i = 0; i < 3; i++) {
		struct timeval val = {spec.tv_sec, (suseconds_t)(spec.tv_nsec / 1000)};
		struct pollfd fd = {.fd = pair[0], .events = POLLIN};
		fd_set in;

		FD_ZERO(&in);
		FD_SET(pair[0], &in);
		(void)!select(pair[0] + 1, &in, NULL, NULL, &val);
		FD_SET(pair[0], &in);
		(void)!pselect(pair[0] + 1, &in, NULL, NULL, &spec, NULL);
		(void)!poll(&fd, 1, hurry ? 1 : 1000);
		(void)!ppoll(&fd, 1, &spec, NULL);
	}
	return (threads() == 1) == hurry || !getenv("LD_PRELOAD")
		       ? puts("good") < 0
		       : bad(hurry ? "a call with a short time-out waited for weft" : "nothing started");
}

static volatile sig_atomic_t handled;

static void on_alarm(int signal)
{
	uint64_t until = cpu_ns() + 150000000u;
	int fd = open("/dev/null", O_WRONLY);

	(void)signal;
	while (cpu_ns() < until)
		for (int i = 0; i < 100; i++)
			(void)!write(fd, "x", 1);
	close(fd);
	handled = 1;
}

/* Whatever the signal interrupts: a thread that is made inside the handler would find the heap half changed, sooner
 * or later. */
static int handler(void)
{
	struct itimerval timer = {.it_value = {0, 5000}};
	uint64_t until;
	int n;

	signal(SIGALRM, on_alarm);
	setitimer(ITIMER_REAL, &timer, NULL);
	while (!handled)
		free(malloc(1000 + (size_t)rand() % 10000));
	n = threads();
	until = cpu_ns() + 2000000000u;
	if (n != 1)
		return bad("a thread was made in the handler");
	while (getenv("LD_PRELOAD") && threads() == 1 && cpu_ns() < until)
		burn_without_calls(1);
	return threads() > 1 || !getenv("LD_PRELOAD") ? puts("good") < 0 : bad("nothing started after the handler");
}

static int defaults(void)
{
	for (int i = SIGRTMIN; i <= SIGRTMAX; i++)
		signal(i, SIG_DFL);
	burn_without_calls(150);
	return puts("good") < 0;
}

static bool is_there(int pagemap, uintptr_t at)
{
	uint64_t entry = 0;

	return pread(pagemap, &entry, sizeof(entry), (off_t)(at / 4096 * sizeof(entry))) == (ssize_t)sizeof(entry) &&
	       entry >> 63;
}

/* What each fork has to copy: a program that has no heap has none with weft, and what weft's library has written to
 * is side by side. */
static int light(void)
{
	static char maps[1 << 16];
	int fd = open("/proc/self/maps", O_RDONLY), pagemap = open("/proc/self/pagemap", O_RDONLY);
	uintptr_t low, high, at, table = 0, end = 0;
	char *line, *rest, *save = NULL;
	ssize_t n, all = 0;
	int tables = 0;
	bool ours;

	while ((n = read(fd, maps + all, sizeof(maps) - 1 - (size_t)all)) > 0)
		all += n;
	if (strstr(maps, "[heap]"))
		return bad("there is a heap");
	for (line = strtok_r(maps, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		low = strtoul(line, &rest, 16);
		high = strtoul(rest + 1, &rest, 16);
		ours = strstr(rest, "libweft-preload.so") != NULL;
		if (!ours && (low != end || strchr(rest, '/')))
			continue;
		end = ours ? high : 0; /* one without a name follows */
		for (at = low; rest[2] == 'w' && at < high; at += 4096)
			if (at >> 21 != table && is_there(pagemap, at)) {
				table = at >> 21;
				tables++;
			}
	}
	if (getenv("LD_PRELOAD") && tables == 0)
		return bad("weft's library was not found");
	return tables <= 2 ? puts("good") < 0 : bad("what weft has written to is in more than two page tables");
}

static void *burn_a_little(void *unused)
{
	burn_without_calls(2);
	return unused;
}

static int short_threads(int n)
{
	pthread_t thread;
	int i;

	for (i = 0; i < n; i++)
		if (pthread_create(&thread, NULL, burn_a_little, NULL) != 0 || pthread_join(thread, NULL) != 0)
			return bad("a thread did not start or end");
	return puts("good") < 0;
}

int main(int argc, char **argv)
{
	if (argc > 2 && strcmp(argv[1], "spin") == 0)
		return spin(atol(argv[2]));
	if (argc > 2 && strcmp(argv[1], "forks") == 0)
		return forks(atoi(argv[2]));
	if (argc > 2 && strcmp(argv[1], "killed") == 0)
		return killed(atoi(argv[2]));
	if (argc > 2 && strcmp(argv[1], "child") == 0)
		return child(atol(argv[2]));
	if (argc > 2 && strcmp(argv[1], "dlopen") == 0)
		return in_dlopen(argv[2]);
	if (argc > 2 && strcmp(argv[1], "import") == 0)
		return import(argv[2]);
	if (argc > 1 && strcmp(argv[1], "hurry") == 0)
		return polls(true);
	if (argc > 1 && strcmp(argv[1], "polls") == 0)
		return polls(false);
	if (argc > 1 && strcmp(argv[1], "handler") == 0)
		return handler();
	if (argc > 1 && strcmp(argv[1], "defaults") == 0)
		return defaults();
	if (argc > 2 && strcmp(argv[1], "threads") == 0)
		return short_threads(atoi(argv[2]));
	if (argc > 1 && strcmp(argv[1], "light") == 0)
		return light();
	return bad("usage: run_small spin MS | forks N | killed N | child MS | dlopen LIBRARY | import LIBRARY | hurry "
		   "| polls | "
		   "handler | defaults | threads N | light");
}
