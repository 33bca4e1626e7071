/* SPDX-License-Identifier: Apache-2.0 */
/* Machines that allow less: no perf events, no privilege, few timers, few files. Each in a process of its own. */
/* serial: it changes kernel.perf_event_paranoid for a moment */
#include "child.h"
#include "samples.h"

#include <grp.h>
#include <sys/resource.h>

static struct samples result;

/* Records into the directory that is there, and reads it. */
static void record(struct weft_recorder_opts opts, uint64_t n)
{
	struct weft_recorder *rec;

	opts.dir = session_dir;
	rec = session_start(&opts);
	REQUIRE(rec);
	CHECK(samples_burn_for(n));
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	samples_read(&result, session_dir, NULL, 0);
	CHECK_EQ(result.tally.damaged, 0);
}

static void refused_main(const void *data)
{
	struct weft_recorder_opts opts = {.sample_engine = WEFT_ENGINE_PERF, .sample_hz = 999, .sample_kernel = 1};

	CHECK_EQ(child_refuse(SYS_perf_event_open, *(const int *)data), 0);
	record(opts, 10);
	CHECK_STR(result.engine, "timer");
	CHECK(strstr(result.degraded, "perf event cpu-clock") != NULL);
	CHECK(strstr(result.degraded, "samples a second") != NULL); /* 999 are more than a timer can */
	CHECK(result.n >= 10);
}

TEST(a_filter_that_refuses_perf_events_leaves_the_timer)
{
	static const int errors[] = {EPERM, EACCES, ENOSYS};

	SKIP_UNDER_TSAN();
	for (int i = 0; i < 3; i++)
		CHECK_EQ(child_run(refused_main, &errors[i]), 0);
}

/* What open found is not there any more at start: the facts are those of what is used, in what is recovered, too. */
static void refused_later_main(const void *data)
{
	struct weft_recorder_opts opts = {.size = sizeof(opts),
					  .dir = session_dir,
					  .ring_place = WEFT_RING_DIR,
					  .sample_engine = WEFT_ENGINE_PERF,
					  .sample_hz = 999};
	int killed = *(const int *)data;
	struct weft_recorder *rec;

	CHECK_EQ(weft_recorder_open(&rec, &opts, NULL), 0);
	CHECK_EQ(child_refuse(SYS_perf_event_open, EPERM), 0);
	CHECK_EQ(weft_recorder_start(rec, NULL), 0);
	CHECK(samples_burn_for(5));
	if (killed) {
		CHECK(WAIT_FOR(session_stats(rec).drains > 1));
		_exit(weft_test_failures ? 1 : 0);
	}
	CHECK_EQ(weft_recorder_rotate(rec, NULL, 0, NULL), 0);
	samples_burn(20 * MS);
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
}

TEST(perf_events_that_are_refused_at_start_are_recorded)
{
	for (int killed = 0; killed < 2; killed++) {
		pid_t pid;

		SKIP_UNDER_TSAN();
		session_fresh_dir();
		pid = fork();
		if (pid == 0) {
			weft_test_failures = 0;
			refused_later_main(&killed);
			_exit(weft_test_failures ? 1 : 0);
		}
		CHECK_EQ(session_wait(pid), 0);
		if (killed)
			CHECK(weft_recover(session_dir, NULL, NULL, NULL) >= 1);
		else
			CHECK_EQ(tally_files(session_dir, ".weft"), 2);
		samples_read(&result, session_dir, NULL, 0);
		printf("\t%s, %s: %s\n", result.engine, result.why, result.degraded);
		CHECK_STR(result.engine, "timer");
		CHECK_STR(result.why, "perf events could not be had at start");
		CHECK(strstr(result.degraded, weft_strerror(-EPERM)) != NULL);
		CHECK(strstr(result.degraded, "samples a second") != NULL);
		CHECK(result.n > 0);
		CHECK_EQ(result.engines[WEFT_ENGINE_PERF & 3], 0);
		session_remove_dir();
	}
}

static int become_nobody(void)
{
	uid_t uid = 100000 + (uid_t)getpid(); /* whose limits nobody else uses up */

	return child_become(uid);
}

/* Is in the kernel until there are that many more samples. */
static int read_for(uint64_t n)
{
	uint64_t until = samples_cpu_ns(CLOCK_THREAD_CPUTIME_ID) + 20000 * MS;
	int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	static char room[1 << 20];

	n += __atomic_load_n(&weft__engine.samples, __ATOMIC_RELAXED);
	while (__atomic_load_n(&weft__engine.samples, __ATOMIC_RELAXED) < n) {
		if (read(fd, room, sizeof(room)) < 0 || samples_cpu_ns(CLOCK_THREAD_CPUTIME_ID) > until)
			n = 0;
	}
	close(fd);
	return n > 0;
}

static int reads; /* beside what it computes */

/* One after the other, so that the samples that come are the thread's own. */
static void burn_in_turn(void)
{
	static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

	pthread_mutex_lock(&turn);
	CHECK(samples_burn_for(5));
	CHECK(!reads || read_for(5));
	pthread_mutex_unlock(&turn);
}

static void *burn_main(void *data)
{
	*(uint32_t *)data = samples_tid();
	burn_in_turn();
	return NULL;
}

/* All that is there without privilege: both engines, more than one thread. */
static void nobody_main(const void *data)
{
	const struct weft_recorder_opts *opts = data;
	struct weft_recorder_opts full = *opts;
	struct weft_recorder *rec;
	uint32_t tids[2] = {0};
	pthread_t threads[2];

	CHECK_EQ(become_nobody(), 0);
	full.dir = session_dir;
	reads = opts->sample_kernel;
	rec = session_start(&full);
	REQUIRE(rec);
	for (int i = 0; i < 2; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, burn_main, &tids[i]), 0);
	burn_in_turn();
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	samples_read(&result, session_dir, NULL, 0);
	printf("\t%s, %llu samples%s%s\n", result.engine, (unsigned long long)result.n, result.degraded[0] ? ": " : "",
	       result.degraded);
	CHECK(samples_of(&result, samples_tid()) >= 3);
	for (int i = 0; i < 2; i++)
		CHECK(samples_of(&result, tids[i]) >= 3);
	if (opts->sample_kernel && opts->sample_hz == 999)
		CHECK(result.degraded[0] || result.kernel);
	/* Events without the kernel's part would miss what a thread does there; at a lower rate nothing else speaks
	 * for them. */
	if (opts->sample_hz < 250 && strstr(result.degraded, "with kernel frames: not allowed"))
		CHECK_STR(result.engine, "timer");
}

static void check_nobody(void)
{
	struct weft_recorder_opts timer = {.sample_engine = WEFT_ENGINE_TIMER, .sample_hz = 240};
	struct weft_recorder_opts perf = {.sample_engine = WEFT_ENGINE_PERF, .sample_hz = 999};
	struct weft_recorder_opts both = {.sample_hz = 999};
	struct weft_recorder_opts kernel = {.sample_hz = 999, .sample_kernel = 1};
	struct weft_recorder_opts slowly = {.sample_hz = 240, .sample_kernel = 1};

	CHECK_EQ(child_run(nobody_main, &timer), 0);
	CHECK_EQ(child_run(nobody_main, &perf), 0);
	CHECK_EQ(child_run(nobody_main, &both), 0);
	CHECK_EQ(child_run(nobody_main, &kernel), 0);
	CHECK_EQ(child_run(nobody_main, &slowly), 0);
}

TEST(a_user_without_privilege_is_sampled)
{
	SKIP_UNDER_TSAN();
	if (geteuid() != 0)
		SKIP("becoming another user needs root");
	check_nobody();
}

TEST(a_user_without_privilege_is_sampled_at_every_level_of_perf_event_paranoid)
{
	const char *path = "/proc/sys/kernel/perf_event_paranoid";
	FILE *file = fopen(path, "r+e");
	int before;

	if (!file || geteuid() != 0)
		SKIP("kernel.perf_event_paranoid cannot be changed here");
	if (UNDER_TSAN || fscanf(file, "%d", &before) != 1) {
		fclose(file);
		SKIP("ThreadSanitizer holds signals back");
	}
	for (int level = 1; level <= 3; level++) {
		rewind(file);
		if (fprintf(file, "%d\n", level) < 0 || fflush(file))
			continue;
		printf("\tperf_event_paranoid %d\n", level);
		check_nobody();
	}
	rewind(file);
	fprintf(file, "%d\n", before);
	CHECK_EQ(fclose(file), 0);
}

static int go;

static void *wait_and_burn(void *data)
{
	*(uint32_t *)data = samples_tid();
	while (!__atomic_load_n(&go, __ATOMIC_ACQUIRE))
		session_sleep_ns(MS);
	samples_burn(60 * MS);
	return NULL;
}

/* Eight threads, and fewer of something than that. */
static void short_main(const void *data)
{
	const struct weft_recorder_opts *opts = data;
	struct weft_recorder_opts full = *opts;
	struct weft_recorder *rec;
	uint32_t tids[8] = {0}, sampled = 0;
	pthread_t threads[8];
	struct rlimit few = {3, 3};
	int timer = opts->sample_engine == WEFT_ENGINE_TIMER;

	for (int i = 0; i < 8; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, wait_and_burn, &tids[i]), 0);
	full.dir = session_dir;
	if (timer)
		CHECK_EQ(become_nobody(), 0); /* signals are counted by user */
	else
		few.rlim_cur = few.rlim_max = (rlim_t)session_fds() + 5;
	CHECK_EQ(setrlimit(timer ? RLIMIT_SIGPENDING : RLIMIT_NOFILE, &few), 0);
	rec = session_start(&full);
	REQUIRE(rec);
	CHECK(weft__engine_counts().uncovered > 0);
	__atomic_store_n(&go, 1, __ATOMIC_RELEASE);
	for (int i = 0; i < 8; i++)
		pthread_join(threads[i], NULL);
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	samples_read(&result, session_dir, NULL, 0);
	for (int i = 0; i < 8; i++)
		sampled += samples_of(&result, tids[i]) > 0;
	printf("\t%llu threads uncovered, %u of 8 sampled all the same, %llu ms of 480\n",
	       (unsigned long long)result.uncovered, sampled, (unsigned long long)(result.ns / MS));
	CHECK(result.uncovered > 0);
	CHECK(timer ? sampled >= 6 : sampled >= 1);
}

TEST(too_few_timers_are_counted_and_the_net_holds)
{
	struct weft_recorder_opts opts = {.sample_engine = WEFT_ENGINE_TIMER, .sample_hz = 240};

	SKIP_UNDER_TSAN();
	if (geteuid() != 0)
		SKIP("becoming another user needs root");
	CHECK_EQ(child_run(short_main, &opts), 0);
}

TEST(too_few_files_for_events_are_counted)
{
	struct weft_recorder_opts opts = {.sample_engine = WEFT_ENGINE_PERF, .sample_hz = 999};

	SKIP_UNDER_TSAN();
	CHECK_EQ(child_run(short_main, &opts), 0);
}
