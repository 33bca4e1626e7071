/* SPDX-License-Identifier: Apache-2.0 */
/* Ticks of 1 ms of CPU time and something out of the ordinary. */
/* run: stopped stopped */
/* run: interrupted_sleep interrupted */
/* run: pi_mutex pi_mutex */
/* run: migrated migrated */
/* run: nice_5 nice */
/* run: getline_pipe getline */
/* run: raw_syscall_read raw_read */
/* run: posix_spawn spawn */
/* run: accept_wait accept */
/* run: splice_wait splice */
/* run: sigsuspend sigsuspend */
/* run: own_sigprof sigprof */
#include "truth.h"
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>

extern char **environ;
static const char *how;
static int ends[2], listener, stop, turn;
static struct sockaddr_in address = {.sin_family = AF_INET};
static pthread_mutex_t lock;
static pthread_t main_thread;

static int is(const char *name)
{
	return !strcmp(how, name);
}

static void handler(int signal)
{
	(void)signal;
}

static void *spin(void *arg)
{
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED))
		;
	return arg;
}

static void *other(void *arg)
{
	pid_t child;
	int fd;

	if (is("pi_mutex"))
		pthread_mutex_lock(&lock);
	__atomic_store_n(&turn, 1, __ATOMIC_RELEASE);
	truth_nap(4 * MS);
	if (is("stopped")) {
		child = fork();
		if (child == 0) {
			kill(getppid(), SIGSTOP);
			truth_nap(8 * MS);
			kill(getppid(), SIGCONT);
			_exit(0);
		}
		waitpid(child, NULL, 0);
	} else if (is("pi_mutex")) {
		pthread_mutex_unlock(&lock);
	} else if (is("interrupted") || is("sigsuspend")) {
		pthread_kill(main_thread, SIGUSR1);
	} else if (is("accept")) {
		fd = socket(AF_INET, SOCK_STREAM, 0);
		connect(fd, (struct sockaddr *)&address, sizeof(address));
		close(fd);
	} else if (write(ends[1], "line\n", 5) != 5) {
		abort();
	}
	return arg;
}

static void odd(int tick, FILE *file)
{
	char *line = NULL, *args[] = {"true", NULL};
	struct timespec ts = {0, 20 * MS};
	size_t size = 0;
	cpu_set_t cpu;
	sigset_t none;
	pid_t pid;
	long n;

	sigemptyset(&none);
	if (is("stopped") || is("nice") || is("sigprof")) {
		truth_burn(10 * MS);
	} else if (is("interrupted")) {
		nanosleep(&ts, NULL);
	} else if (is("pi_mutex")) {
		truth_wait_begin();
		pthread_mutex_lock(&lock);
		truth_wait_end();
		pthread_mutex_unlock(&lock);
	} else if (is("migrated")) {
		CPU_ZERO(&cpu);
		CPU_SET(tick % (int)sysconf(_SC_NPROCESSORS_ONLN), &cpu);
		sched_setaffinity(0, sizeof(cpu), &cpu);
		truth_burn(3 * MS);
	} else if (is("getline")) {
		if (getline(&line, &size, file) < 0)
			abort();
		free(line);
#ifdef __x86_64__
	} else if (is("raw_read")) {
		char data[8];
		__asm__ volatile("syscall"
				 : "=a"(n)
				 : "0"(SYS_read), "D"(ends[0]), "S"(data), "d"(5L)
				 : "rcx", "r11", "memory");
#endif
	} else if (is("spawn")) {
		if (!posix_spawn(&pid, "/bin/true", NULL, NULL, args, environ))
			waitpid(pid, NULL, 0);
	} else if (is("accept")) {
		close(accept(listener, NULL, NULL));
	} else if (is("splice")) {
		int null = open("/dev/null", O_WRONLY);
		n = splice(ends[0], NULL, null, NULL, 5, 0);
		close(null);
	} else if (is("sigsuspend")) {
		sigsuspend(&none);
	}
}

int main(int argc, char **argv)
{
	struct itimerval often = {{0, 3000}, {0, 3000}};
	socklen_t size = sizeof(address);
	int loop = truth_loop(), tick, helped;
	pthread_mutexattr_t attr;
	pthread_t thread, spinner;
	struct truth_poll *poll;
	cpu_set_t cpu;
	sigset_t set;
	FILE *file;

	how = argc > 1 ? argv[1] : "stopped";
	main_thread = pthread_self();
	helped = !is("migrated") && !is("nice") && !is("spawn") && !is("sigprof");
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT);
	pthread_mutex_init(&lock, &attr);
	listener = socket(AF_INET, SOCK_STREAM, 0);
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (pipe(ends) || bind(listener, (struct sockaddr *)&address, size) || listen(listener, 8) ||
	    getsockname(listener, (struct sockaddr *)&address, &size))
		return 1;
	file = fdopen(dup(ends[0]), "r");
	signal(SIGUSR1, handler);
	signal(SIGPROF, is("sigprof") ? handler : SIG_DFL);
	if (is("sigprof"))
		setitimer(ITIMER_PROF, &often, NULL);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	if (is("sigsuspend")) /* not before the call */
		pthread_sigmask(SIG_BLOCK, &set, NULL);
	if (is("nice")) {
		CPU_ZERO(&cpu);
		CPU_SET(sched_getcpu(), &cpu);
		sched_setaffinity(0, sizeof(cpu), &cpu);
		pthread_create(&spinner, NULL, spin, NULL);
		if (setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), 5))
			truth_skip("the priority cannot be changed");
	}
	for (tick = 0; tick < (is("nice") ? 3 : 6); tick++) {
		turn = 0;
		if (helped)
			pthread_create(&thread, NULL, other, NULL);
		while (helped && !__atomic_load_n(&turn, __ATOMIC_ACQUIRE))
			sched_yield();
		truth_next(loop);
		poll = truth_begin(how);
		truth_burn(MS);
		odd(tick, file);
		truth_end(poll);
		truth_next(loop);
		if (helped)
			pthread_join(thread, NULL);
	}
	truth_next(loop);
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	if (is("sigprof"))
		setitimer(ITIMER_PROF, &(struct itimerval){{0, 0}, {0, 0}}, NULL);
	truth_print();
	return 0;
}
