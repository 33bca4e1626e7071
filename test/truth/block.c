/* SPDX-License-Identifier: Apache-2.0 */
/* Ticks of 2 ms of CPU time and a call that blocks for some milliseconds. */
/* run: read_pipe read */
/* run: recv_socket recv */
/* run: recv_timeout recv_timeout */
/* run: connect_timeout connect */
/* run: write_fsync fsync */
/* run: waitpid waitpid */
/* run: system_sh system */
/* run: flock_wait flock */
/* run: sigtimedwait sigtimedwait */
/* run: semtimedop semtimedop */
/* run: eventfd_read eventfd */
/* run: getaddrinfo getaddrinfo */
#include "truth.h"
#include <arpa/inet.h>
#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/wait.h>

static int ends[2], other;
static char path[] = "weft-truth-XXXXXX";

static void *wake(void *arg) /* after 5 ms */
{
	truth_nap(5 * MS);
	if (other >= 0)
		flock(other, LOCK_UN);
	else if (write(ends[1], "12345678", 8) < 0)
		abort();
	return arg;
}

static int connect_full(void)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	struct timeval tv = {0, 8000};
	socklen_t size = sizeof(to);
	int listener = socket(AF_INET, SOCK_STREAM, 0), fd = -1, i;

	if (bind(listener, (struct sockaddr *)&to, size) < 0 || listen(listener, 0) < 0 ||
	    getsockname(listener, (struct sockaddr *)&to, &size) < 0)
		return -1;
	for (i = 0; i < 3; i++) { /* the queue has room for one or two */
		fd = socket(AF_INET, SOCK_STREAM, 0);
		setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv));
		if (connect(fd, (struct sockaddr *)&to, size) < 0)
			break;
	}
	return close(listener);
}

static void block(const char *how)
{
	struct timespec ts = {0, 5 * MS};
	struct sembuf take = {0, -1, 0};
	struct addrinfo *found = NULL;
	static char data[1 << 20];
	sigset_t set;
	pid_t pid;
	int sem, i;

	if (!strcmp(how, "fsync")) {
		for (i = 0; i < 4; i++)
			if (write(ends[0], data, sizeof(data)) < 0)
				abort();
		fsync(ends[0]);
	} else if (!strcmp(how, "connect")) {
		connect_full();
	} else if (!strcmp(how, "waitpid")) {
		pid = fork();
		if (pid == 0) {
			truth_nap(5 * MS);
			_exit(0);
		}
		waitpid(pid, NULL, 0);
	} else if (!strcmp(how, "system")) {
		if (system("sleep 0.01") < 0)
			abort();
	} else if (!strcmp(how, "flock")) {
		flock(ends[0], LOCK_EX);
	} else if (!strcmp(how, "sigtimedwait")) {
		sigemptyset(&set);
		sigaddset(&set, SIGRTMAX);
		sigtimedwait(&set, NULL, &ts);
	} else if (!strcmp(how, "semtimedop")) {
		sem = semget(IPC_PRIVATE, 1, 0600);
		semtimedop(sem, &take, 1, &ts);
		semctl(sem, 0, IPC_RMID);
	} else if (!strcmp(how, "getaddrinfo")) {
		for (i = 0; i < 20; i++)
			if (!getaddrinfo("127.0.0.1", "http", NULL, &found))
				freeaddrinfo(found);
	} else if (!strncmp(how, "recv", 4)) {
		recv(ends[0], data, 8, 0);
	} else if (read(ends[0], data, 8) < 0) {
		abort();
	}
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "read";
	int loop = truth_loop(), tick,
	    woken = !strcmp(how, "read") || !strcmp(how, "recv") || !strcmp(how, "flock") || !strcmp(how, "eventfd");
	struct timeval tv = {0, 8000};
	pthread_t thread;

	other = -1;
	if (!strncmp(how, "recv", 4) ? socketpair(AF_UNIX, SOCK_STREAM, 0, ends) : pipe(ends))
		return 1;
	if (!strcmp(how, "recv_timeout"))
		setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv));
	if (!strcmp(how, "eventfd"))
		ends[0] = ends[1] = eventfd(0, 0);
	if (!strcmp(how, "fsync") || !strcmp(how, "flock")) {
		ends[0] = mkstemp(path);
		other = open(path, O_RDWR);
		unlink(path);
	}
	for (tick = 0; tick < 8; tick++) {
		if (woken && other >= 0)
			flock(other, LOCK_EX);
		truth_next(loop);
		if (woken)
			pthread_create(&thread, NULL, wake, NULL);
		struct truth_poll *poll = truth_begin(how);
		truth_burn(2 * MS);
		block(how);
		truth_end(poll);
		if (woken && (truth_next(loop), pthread_join(thread, NULL), other >= 0))
			flock(ends[0], LOCK_UN);
	}
	truth_next(loop);
	truth_note("\"descriptors\": {\"read\": \"%s\", \"recv\": \"unix socket\", \"connect\": \"tcp 127.0.0.1:\"}",
		   strcmp(how, "eventfd") ? "pipe" : "eventfd");
	truth_print();
	return 0;
}
