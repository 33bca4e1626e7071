/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that block for a known time on threads that have no loop, in a program that knows nothing of weft. For each
 * it says its name, and the least and the most ns that it can have blocked. Usage: run_blocks DIR */
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "times.h"
#include "waits_for.h"

static int pipe_ends[2], log_ends[2], pair[2], listener, file, other_file;
static FILE *log_file, *lines;
static char fifo[200];
static struct sockaddr_un address = {.sun_family = AF_UNIX};
static pthread_barrier_t barrier;
static int word;

static void must(int good, const char *what)
{
	if (good)
		return;
	perror(what);
	exit(9);
}

static void do_read(void)
{
	char c;

	must(read(pipe_ends[0], &c, 1) == 1, "read");
}

static void end_read(pthread_t thread)
{
	(void)thread;
	must(write(pipe_ends[1], "x", 1) == 1, "write");
}

static void do_recv(void)
{
	char c;

	must(recv(pair[0], &c, 1, 0) == 1, "recv");
}

static void end_recv(pthread_t thread)
{
	(void)thread;
	must(write(pair[1], "x", 1) == 1, "write");
}

static void do_accept(void)
{
	int fd = accept(listener, NULL, NULL);

	must(fd >= 0, "accept");
	close(fd);
}

static void end_accept(pthread_t thread)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)thread;
	must(fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0, "connect");
	close(fd);
}

/* The only one of its thread, which makes no loop. */
static void do_poll(void)
{
	struct pollfd one = {.fd = pipe_ends[0], .events = POLLIN};
	char c;

	must(poll(&one, 1, -1) == 1, "poll");
	must(read(pipe_ends[0], &c, 1) == 1, "read");
}

static void do_flock(void)
{
	must(flock(other_file, LOCK_EX) == 0, "flock");
	flock(other_file, LOCK_UN);
}

static void lock_file(void)
{
	must(flock(file, LOCK_EX) == 0, "flock");
}

static void end_flock(pthread_t thread)
{
	(void)thread;
	flock(file, LOCK_UN);
}

static int range(int fd, int how, short type)
{
	struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_len = 1};

	return fcntl(fd, how, &lock);
}

static void do_fcntl(void)
{
	must(range(other_file, F_OFD_SETLKW, F_WRLCK) == 0, "fcntl");
	range(other_file, F_OFD_SETLK, F_UNLCK);
}

static void lock_range(void)
{
	must(range(file, F_OFD_SETLK, F_WRLCK) == 0, "fcntl");
}

static void end_fcntl(pthread_t thread)
{
	(void)thread;
	range(file, F_OFD_SETLK, F_UNLCK);
}

static void do_open(void)
{
	int fd = open(fifo, O_RDONLY | O_CLOEXEC);

	must(fd >= 0, "open");
	close(fd);
}

static void end_open(pthread_t thread)
{
	int fd = open(fifo, O_WRONLY | O_CLOEXEC);

	(void)thread;
	must(fd >= 0, "open");
	close(fd);
}

/* As a runtime does whose locks are its own. */
static void do_futex(void)
{
	while (__atomic_load_n(&word, __ATOMIC_ACQUIRE) == 0)
		syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
	word = 0;
}

static void end_futex(pthread_t thread)
{
	(void)thread;
	__atomic_store_n(&word, 1, __ATOMIC_RELEASE);
	syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void do_barrier(void)
{
	pthread_barrier_wait(&barrier);
}

static void end_barrier(pthread_t thread)
{
	(void)thread;
	pthread_barrier_wait(&barrier);
}

static void do_sigwait(void)
{
	sigset_t set;
	int got;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	must(sigwait(&set, &got) == 0, "sigwait");
}

static void end_sigwait(pthread_t thread)
{
	pthread_kill(thread, SIGUSR1);
}

/* A log that nobody reads, until somebody does. The line of an earlier try may still be in there: a pipe that is to
 * be filled is empty. */
static void fill_log(void)
{
	static char full[1 << 20];
	int left = 0;

	must(ioctl(log_ends[0], FIONREAD, &left) == 0, "FIONREAD");
	must(left == 0 || read(log_ends[0], full, sizeof(full)) > 0, "read");
	must(write(log_ends[1], full, (size_t)fcntl(log_ends[1], F_GETPIPE_SZ)) > 0, "write");
}

static void do_fprintf(void)
{
	must(fprintf(log_file, "%s\n", "a line") > 0, "fprintf");
}

static void end_fprintf(pthread_t thread)
{
	static char room[1 << 20];

	(void)thread;
	must(read(log_ends[0], room, sizeof(room)) > 0, "read");
}

static void do_fgets(void)
{
	char text[100];

	must(fgets(text, sizeof(text), lines) != NULL, "fgets");
}

static void end_fgets(pthread_t thread)
{
	(void)thread;
	must(write(pipe_ends[1], "line\n", 5) == 5, "write");
}

static void nothing(void)
{
}

struct block {
	const char *name;
	long number; /* of the system call that it is in */
	long ns;
	void (*before)(void), (*block)(void), (*end)(pthread_t thread);
};

static const struct block blocks[] = {
	{"read", SYS_read, 12 * MS, nothing, do_read, end_read},
	{"recv", SYS_recvfrom, 14 * MS, nothing, do_recv, end_recv},
	{"accept", SYS_accept, 16 * MS, nothing, do_accept, end_accept},
	{"poll", SYS_poll, 18 * MS, nothing, do_poll, end_read},
	{"flock", SYS_flock, 20 * MS, lock_file, do_flock, end_flock},
	{"fcntl", SYS_fcntl, 22 * MS, lock_range, do_fcntl, end_fcntl},
	{"open", SYS_openat, 24 * MS, nothing, do_open, end_open},
	{"futex", SYS_futex, 26 * MS, nothing, do_futex, end_futex},
	{"pthread_barrier_wait", SYS_futex, 28 * MS, nothing, do_barrier, end_barrier},
	{"fprintf", SYS_write, 30 * MS, fill_log, do_fprintf, end_fprintf},
	{"fgets", SYS_read, 32 * MS, nothing, do_fgets, end_fgets},
	{"sigwait", SYS_rt_sigtimedwait, 34 * MS, nothing, do_sigwait, end_sigwait},
};

struct blocked {
	const struct block *block;
	int tid;
	uint64_t ns;
};

static void *be_blocked(void *data)
{
	struct blocked *me = data;
	uint64_t begin;

	__atomic_store_n(&me->tid, (int)syscall(SYS_gettid), __ATOMIC_RELEASE);
	begin = now_ns(CLOCK_MONOTONIC);
	me->block->block();
	me->ns = now_ns(CLOCK_MONOTONIC) - begin;
	return NULL;
}

/* Whether what it can have been is known well. */
static int measure(const struct block *block)
{
	struct blocked blocked = {.block = block};
	uint64_t begin, least;
	pthread_t thread;

	block->before();
	must(pthread_create(&thread, NULL, be_blocked, &blocked) == 0, "pthread_create");
	while (__atomic_load_n(&blocked.tid, __ATOMIC_ACQUIRE) == 0)
		nap(MS / 20);
	until_in_call(blocked.tid, block->number);
	begin = now_ns(CLOCK_MONOTONIC);
	nap(block->ns);
	least = now_ns(CLOCK_MONOTONIC) - begin;
	block->end(thread);
	pthread_join(thread, NULL);
	printf("%s %llu %llu 0\n", block->name, (unsigned long long)least, (unsigned long long)blocked.ns);
	return blocked.ns - least <= blocked.ns / 20 || blocked.ns - least <= MS / 5;
}

static void prepare(const char *dir)
{
	char path[200];
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	pthread_barrier_init(&barrier, NULL, 2);
	must(pipe(pipe_ends) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0, "pipe");
	must(pipe(log_ends) == 0, "pipe");
	log_file = fdopen(log_ends[1], "w");
	lines = fdopen(pipe_ends[0], "r");
	must(log_file && lines && setvbuf(log_file, NULL, _IOLBF, 0) == 0, "fdopen");
	snprintf(path, sizeof(path), "%s/file", dir);
	file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	other_file = open(path, O_RDWR | O_CLOEXEC);
	must(file >= 0 && other_file >= 0, path);
	snprintf(fifo, sizeof(fifo), "%s/fifo", dir);
	must(mkfifo(fifo, 0600) == 0, fifo);
	snprintf(address.sun_path, sizeof(address.sun_path), "%s/socket", dir);
	listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	must(bind(listener, (struct sockaddr *)&address, sizeof(address)) == 0 && listen(listener, 1) == 0, "listen");
}

int main(int argc, char **argv)
{
	size_t i;
	int tries;

	if (argc < 2)
		return 2;
	prepare(argv[1]);
	for (i = 0; i < sizeof(blocks) / sizeof(blocks[0]); i++)
		for (tries = 0; tries < 20 && !measure(&blocks[i]); tries++)
			; /* the machine was elsewhere */
	return 0;
}
