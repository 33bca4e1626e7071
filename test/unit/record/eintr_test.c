/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that wait, one by one by their names: none of them fails with EINTR because weft looks, samples and watches,
 * and none that has a time-out returns before it. Each is made by a thread of its own, again and again, in a poll
 * that does not end, and the thread uses the CPU in between, so that it has samples. */
/* serial: time-outs of sockets are in ticks, of which a virtual machine that stood still makes several at once */
#include <linux/futex.h>
#include <netinet/in.h>
#include <poll.h>
#include <semaphore.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "base/atomic.h"
#include "walls.h"

#define SOON_NS (3 * MS) /* time-outs, and the time after which the others are released */

/* What one thread waits for. */
struct call {
	pthread_t thread;
	const char *name;
	int (*wait)(struct call *call); /* errno of one wait, or 0; ETIMEDOUT and EAGAIN are 0 */
	int timed;                      /* it ends by itself */
	uint32_t tid;
	int fds[2], epoll;
	sem_t sem;
	pthread_mutex_t lock;
	pthread_cond_t cond;
	uint32_t word;
	uint64_t n, interrupted, early, failed;
	int error;
};

static uint32_t done;

static int answer(long got)
{
	if (got >= 0)
		return 0;
	return errno == ETIMEDOUT || errno == EAGAIN ? 0 : errno;
}

static struct timespec in_real(uint64_t ns)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	ns += (uint64_t)ts.tv_nsec;
	ts.tv_sec += (time_t)(ns / 1000000000);
	ts.tv_nsec = (long)(ns % 1000000000);
	return ts;
}

static const struct timespec soon = {0, SOON_NS};

static int drain_byte(struct call *c, long got)
{
	char byte;

	if (got > 0)
		got = read(c->fds[0], &byte, 1);
	return answer(got);
}

static int call_epoll_wait(struct call *c)
{
	struct epoll_event ev;

	return drain_byte(c, epoll_wait(c->epoll, &ev, 1, c->timed ? (int)(SOON_NS / MS) : -1));
}

static int call_epoll_pwait(struct call *c)
{
	struct epoll_event ev;
	sigset_t none;

	sigemptyset(&none);
	return drain_byte(c, epoll_pwait(c->epoll, &ev, 1, c->timed ? (int)(SOON_NS / MS) : -1, &none));
}

static int call_poll(struct call *c)
{
	struct pollfd fd = {.fd = c->fds[0], .events = POLLIN};

	return drain_byte(c, poll(&fd, 1, c->timed ? (int)(SOON_NS / MS) : -1));
}

static int call_ppoll(struct call *c)
{
	struct pollfd fd = {.fd = c->fds[0], .events = POLLIN};

	return drain_byte(c, ppoll(&fd, 1, c->timed ? &soon : NULL, NULL));
}

static int call_select(struct call *c)
{
	struct timeval tv = {0, SOON_NS / 1000};
	fd_set set;

	FD_ZERO(&set);
	FD_SET(c->fds[0], &set);
	return drain_byte(c, select(c->fds[0] + 1, &set, NULL, NULL, c->timed ? &tv : NULL));
}

static int call_pselect(struct call *c)
{
	fd_set set;

	FD_ZERO(&set);
	FD_SET(c->fds[0], &set);
	return drain_byte(c, pselect(c->fds[0] + 1, &set, NULL, NULL, c->timed ? &soon : NULL, NULL));
}

static int call_nanosleep(struct call *c)
{
	(void)c;
	return answer(nanosleep(&soon, NULL));
}

static int call_usleep(struct call *c)
{
	(void)c;
	return answer(usleep(SOON_NS / 1000));
}

static int call_clock_nanosleep(struct call *c)
{
	(void)c;
	return clock_nanosleep(CLOCK_MONOTONIC, 0, &soon, NULL);
}

static int call_clock_nanosleep_until(struct call *c)
{
	struct timespec ts;
	uint64_t ns;

	(void)c;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	ns = (uint64_t)ts.tv_nsec + SOON_NS;
	ts.tv_sec += (time_t)(ns / 1000000000);
	ts.tv_nsec = (long)(ns % 1000000000);
	return clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
}

static int call_futex(struct call *c)
{
	uint32_t word = load_acquire(&c->word);
	long got = syscall(SYS_futex, &c->word, FUTEX_WAIT_PRIVATE, word, c->timed ? &soon : NULL, NULL, 0);

	return answer(got);
}

static int call_read(struct call *c)
{
	char byte;

	return answer(read(c->fds[0], &byte, 1));
}

static int call_recv(struct call *c)
{
	char byte;

	return answer(recv(c->fds[0], &byte, 1, 0));
}

static int call_accept(struct call *c)
{
	int fd = accept(c->fds[0], NULL, NULL);

	if (fd >= 0)
		close(fd);
	return answer(fd);
}

static int call_sem_wait(struct call *c)
{
	return answer(sem_wait(&c->sem));
}

static int call_sem_timedwait(struct call *c)
{
	struct timespec until = in_real(SOON_NS);

	return answer(sem_timedwait(&c->sem, &until));
}

static int call_cond(struct call *c)
{
	struct timespec until = in_real(SOON_NS);
	int err;

	pthread_mutex_lock(&c->lock);
	err = c->timed ? pthread_cond_timedwait(&c->cond, &c->lock, &until) : pthread_cond_wait(&c->cond, &c->lock);
	pthread_mutex_unlock(&c->lock);
	return err == ETIMEDOUT ? 0 : err;
}

static void by_pipe(struct call *c)
{
	CHECK_EQ(pipe2(c->fds, O_CLOEXEC), 0);
}

static void by_epoll(struct call *c)
{
	struct epoll_event ev = {.events = EPOLLIN};

	by_pipe(c);
	c->epoll = epoll_create1(EPOLL_CLOEXEC);
	CHECK_EQ(epoll_ctl(c->epoll, EPOLL_CTL_ADD, c->fds[0], &ev), 0);
}

static void by_socket(struct call *c)
{
	struct timeval tv = {0, SOON_NS / 1000};

	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, c->fds), 0);
	if (c->timed)
		CHECK_EQ(setsockopt(c->fds[0], SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)), 0);
}

/* Nobody connects: without a time-out, shutdown ends it once, at the end. */
static void by_listener(struct call *c)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct timeval tv = {0, SOON_NS / 1000};

	c->fds[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK_EQ(bind(c->fds[0], (struct sockaddr *)&at, sizeof(at)), 0);
	CHECK_EQ(listen(c->fds[0], 8), 0);
	if (c->timed)
		CHECK_EQ(setsockopt(c->fds[0], SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)), 0);
}

static void by_nothing(struct call *c)
{
	(void)c;
}

static const struct {
	const char *name;
	int (*wait)(struct call *);
	void (*make)(struct call *);
	int timed;
} calls[] = {
	{"epoll_wait", call_epoll_wait, by_epoll, 0},
	{"epoll_wait, time-out", call_epoll_wait, by_epoll, 1},
	{"epoll_pwait", call_epoll_pwait, by_epoll, 0},
	{"epoll_pwait, time-out", call_epoll_pwait, by_epoll, 1},
	{"poll", call_poll, by_pipe, 0},
	{"poll, time-out", call_poll, by_pipe, 1},
	{"ppoll", call_ppoll, by_pipe, 0},
	{"ppoll, time-out", call_ppoll, by_pipe, 1},
	{"select", call_select, by_pipe, 0},
	{"select, time-out", call_select, by_pipe, 1},
	{"pselect", call_pselect, by_pipe, 0},
	{"pselect, time-out", call_pselect, by_pipe, 1},
	{"nanosleep", call_nanosleep, by_nothing, 1},
	{"usleep", call_usleep, by_nothing, 1},
	{"clock_nanosleep", call_clock_nanosleep, by_nothing, 1},
	{"clock_nanosleep, absolute", call_clock_nanosleep_until, by_nothing, 1},
	{"futex", call_futex, by_nothing, 0},
	{"futex, time-out", call_futex, by_nothing, 1},
	{"read of a pipe", call_read, by_pipe, 0},
	{"read of a socket", call_read, by_socket, 0},
	{"read of a socket, SO_RCVTIMEO", call_read, by_socket, 1},
	{"recv", call_recv, by_socket, 0},
	{"recv, SO_RCVTIMEO", call_recv, by_socket, 1},
	{"accept", call_accept, by_listener, 0},
	{"accept, SO_RCVTIMEO", call_accept, by_listener, 1},
	{"sem_wait", call_sem_wait, by_nothing, 0},
	{"sem_timedwait", call_sem_timedwait, by_nothing, 1},
	{"pthread_cond_wait", call_cond, by_nothing, 0},
	{"pthread_cond_timedwait", call_cond, by_nothing, 1},
};
#define CALLS (sizeof(calls) / sizeof(calls[0]))

static struct call threads[CALLS];
static struct walls result;

static void *call_main(void *data)
{
	struct call *c = data;

	store_release(&c->tid, samples_tid());
	weft_poll_begin((uint64_t)(c - threads) + 1, 0);
	while (!load_acquire(&done)) {
		uint64_t from = session_now_ns();
		int err = c->wait(c);
		uint64_t took = session_now_ns() - from;

		__atomic_add_fetch(&c->n, 1, __ATOMIC_RELAXED);
		c->interrupted += err == EINTR;
		c->failed += err && err != EINTR;
		c->error = err && err != EINTR ? err : c->error;
		/* Time-outs of poll and select are rounded to the clock's tick, and never down by more than that. */
		c->early += c->timed && !err && took < SOON_NS - SOON_NS / 10;
		samples_spin(20000);
	}
	weft_poll_end();
	return NULL;
}

/* Those that have no time-out are released, and so wait anew. */
static void release_one(struct call *c)
{
	static const struct sockaddr_in unused;
	struct sockaddr_in at = unused;
	socklen_t n = sizeof(at);

	if (c->wait == call_accept && !c->timed) {
		int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

		getsockname(c->fds[0], (struct sockaddr *)&at, &n);
		CHECK_EQ(connect(fd, (struct sockaddr *)&at, sizeof(at)), 0);
		close(fd);
	} else if (c->fds[1] && !c->timed) {
		(void)!write(c->fds[1], "x", 1);
	}
	if (c->timed)
		return;
	sem_post(&c->sem);
	pthread_cond_broadcast(&c->cond);
	add_relaxed(&c->word, 1);
	syscall(SYS_futex, &c->word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void make_all(void)
{
	memset(threads, 0, sizeof(threads));
	store_release(&done, 0u);
	for (size_t i = 0; i < CALLS; i++) {
		struct call *c = &threads[i];

		c->name = calls[i].name;
		c->wait = calls[i].wait;
		c->timed = calls[i].timed;
		sem_init(&c->sem, 0, 0);
		pthread_mutex_init(&c->lock, NULL);
		pthread_cond_init(&c->cond, NULL);
		calls[i].make(c);
		CHECK_EQ(pthread_create(&c->thread, NULL, call_main, c), 0);
	}
}

static void *release_until_joined(void *data)
{
	(void)data;
	while (load_acquire(&done) < 2) {
		for (size_t i = 0; i < CALLS; i++)
			release_one(&threads[i]);
		session_sleep_ns(SOON_NS);
	}
	return NULL;
}

/* On a busy machine some come to it late. */
static int all_waited(void)
{
	for (size_t i = 0; i < CALLS; i++)
		if (__atomic_load_n(&threads[i].n, __ATOMIC_RELAXED) <= 5)
			return 0;
	return 1;
}

static void join_all(pthread_t releaser)
{
	store_release(&done, 1u);
	for (size_t i = 0; i < CALLS; i++)
		pthread_join(threads[i].thread, NULL);
	store_release(&done, 2u);
	pthread_join(releaser, NULL);
	for (size_t i = 0; i < CALLS; i++) {
		struct call *c = &threads[i];

		for (int f = 0; f < 2; f++)
			if (c->fds[f])
				close(c->fds[f]);
		if (c->epoll)
			close(c->epoll);
	}
}

static void under(uint32_t engine, uint64_t hz)
{
	struct weft_recorder *rec;
	pthread_t releaser;
	uint64_t looked = 0;

	rec = session_start(&(struct weft_recorder_opts){.wall_hz = 1000,
							 .sample_engine = engine,
							 .sample_hz = hz,
							 .stuck_ns = 20 * MS,
							 .budget_ppm = WEFT_OFF});
	if (!CHECK(rec))
		return;
	make_all();
	CHECK_EQ(pthread_create(&releaser, NULL, release_until_joined, NULL), 0);
	walls_watch(1000 * MS, 100);
	CHECK(WAIT_FOR(all_waited()));
	join_all(releaser);
	walls_end(&result, rec, NULL, 0);
	for (size_t i = 0; i < CALLS; i++) {
		struct call *c = &threads[i];
		struct walls_thread *t = walls_thread(&result, c->tid);

		if (c->interrupted || c->early || c->failed || getenv("WEFT_TEST_TALK"))
			printf("\t%s: %llu times, %llu EINTR, %llu early, %llu failed (%d); %llu looks, %llu stuck\n",
			       c->name, (unsigned long long)c->n, (unsigned long long)c->interrupted,
			       (unsigned long long)c->early, (unsigned long long)c->failed, c->error,
			       (unsigned long long)t->count, (unsigned long long)t->stuck);
		CHECK_EQ(c->interrupted, 0);
		CHECK_EQ(c->early, 0);
		CHECK_EQ(c->failed, 0);
		CHECK(t->count > 0);
		CHECK(t->stuck > 0);
		CHECK_EQ(t->stuck_task, i + 1);
		looked += t->count;
	}
	printf("\t%llu looks at threads that waited, %llu samples\n", (unsigned long long)looked,
	       (unsigned long long)result.samples);
	CHECK(result.samples > 0 || hz == WEFT_OFF);
}

TEST(no_call_is_interrupted_by_wall_samples_and_the_watchdog)
{
	under(WEFT_ENGINE_AUTO, WEFT_OFF);
}

TEST(no_call_is_interrupted_by_wall_samples_and_the_timer)
{
	SKIP_UNDER_TSAN();
	under(WEFT_ENGINE_TIMER, 240);
}

TEST(no_call_is_interrupted_by_wall_samples_and_perf_events)
{
	SKIP_UNDER_TSAN();
	under(WEFT_ENGINE_PERF, 999);
}

TEST(no_call_is_interrupted_by_wall_samples_timer_and_perf_events)
{
	SKIP_UNDER_TSAN();
	under(WEFT_ENGINE_AUTO, 999);
}

/* Whether the thread has the signal blocked now. */
static int blocks(uint32_t tid, int signal)
{
	char path[64], line[256];
	unsigned long long mask = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%u/status", tid);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "SigBlk: %llx", &mask) == 1)
			break;
	if (file)
		fclose(file);
	return (int)(mask >> (signal - 1) & 1);
}

/* A signal of the process that comes while a thread of weft's runs which blocks it is given to a thread of the program,
 * whose call ends with EINTR. */
TEST(the_timer_of_the_process_is_armed_only_while_the_collector_takes_its_signal)
{
	struct weft_recorder *rec =
		session_start(&(struct weft_recorder_opts){.sample_engine = WEFT_ENGINE_TIMER, .sample_hz = 99});
	int taken = 1;

	REQUIRE(rec);
	if (!weft__engine.net_signal) {
		weft_recorder_close(rec, NULL);
		session_remove_dir();
		SKIP("no timer of the process here: Linux 6.4 and room on alternate stacks are needed");
	}
	for (int i = 0; i < 20 && taken; i++) {
		uint64_t until = session_now_ns() + 10000 * MS;

		while (!__atomic_load_n(&weft__engine.net_ns, __ATOMIC_RELAXED) && session_now_ns() < until)
			sched_yield();
		CHECK(__atomic_load_n(&weft__engine.net_ns, __ATOMIC_RELAXED));
		taken = CHECK(!blocks(weft__own_threads.collector, weft__engine.net_signal));
		CHECK_EQ(weft_recorder_pause(rec), 0);
		CHECK_EQ(weft_recorder_start(rec, NULL), 0);
	}
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	session_remove_dir();
}
