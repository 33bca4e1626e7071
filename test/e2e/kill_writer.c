/* SPDX-License-Identifier: Apache-2.0 */
/* Kills a recorded process at random moments, many times, and proves that recovery finds every event that was
 * published before the kill, once. Each thread numbers its events and writes the number to shared memory after the
 * emit has returned: what is in that memory must be in the segments.
 *
 *     kill_writer kills ROUNDS SEED WEFT    each round: record, kill, recover in one of three ways, check
 *     kill_writer cuts ROUNDS SEED WEFT     the same with the rings gone and the unsealed segment cut anywhere */
#include <fcntl.h>
#include <glob.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "unit/record/tally.h"
#include "weft/weft.h"

#define STEADY 4
#define SOURCES 20000
#define LIFE_US 80000

static _Atomic uint64_t *published;
static char base[64], dir[80], name[32];
static const char *weft;
static unsigned seed;

static uint32_t random_below(uint32_t n)
{
	return (uint32_t)rand_r(&seed) % n;
}

static void sleep_us(uint64_t us)
{
	struct timespec ts = {(time_t)(us / 1000000), (long)(us % 1000000) * 1000};

	nanosleep(&ts, NULL);
}

struct source {
	int kind;
	uint64_t number;
	uint64_t events; /* 0: for ever */
};

static void *emit(void *data)
{
	struct source s = *(struct source *)data;
	uint64_t i;

	for (i = 1; !s.events || i <= s.events; i++) {
		tally_emit(s.kind, s.number, i);
		atomic_store_explicit(&published[s.number], i, memory_order_release);
		if (i % 32 == 0)
			sleep_us(300);
	}
	return NULL;
}

/* Never returns. Small segments and short times, so that drains, flushes, rotations and seals are all under way when
 * the kill comes; short-lived threads, so that rings change hands. */
static void record(void)
{
	struct weft_recorder_opts opts = {.size = sizeof(opts),
					  .dir = dir,
					  .name = name,
					  .segment_bytes = 4096,
					  .drain_ns = 1000000,
					  .flush_ns = 3000000,
					  .keep_bytes = UINT64_C(1) << 30};
	struct source steady[STEADY], brief = {.events = 20};
	struct weft_recorder *rec;
	pthread_t thread;
	uint64_t i;

	if (weft_recorder_open(&rec, &opts, NULL) < 0 || weft_recorder_start(rec, NULL) < 0)
		_exit(3);
	brief.kind = tally_kind();
	for (i = 0; i < STEADY; i++) {
		steady[i] = (struct source){brief.kind, i, 0};
		if (pthread_create(&thread, NULL, emit, &steady[i]) != 0)
			_exit(4);
	}
	for (brief.number = STEADY; brief.number < SOURCES; brief.number++)
		if (pthread_create(&thread, NULL, emit, &brief) != 0 || pthread_join(thread, NULL) != 0)
			_exit(5);
	for (;;)
		pause();
}

static pid_t start(void (*fn)(void))
{
	pid_t pid = fork();

	if (pid == 0) {
		fn();
		_exit(0);
	}
	return pid;
}

static int finish(pid_t pid)
{
	int status = -1;

	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int kill_after(pid_t pid, uint32_t us)
{
	sleep_us(us);
	kill(pid, SIGKILL);
	return finish(pid);
}

static void recover_here(void)
{
	if (weft_recover(dir, NULL, NULL, NULL) < 0)
		_exit(1);
}

static void recover_by_command(void)
{
	int null = open("/dev/null", O_WRONLY);

	dup2(null, STDOUT_FILENO);
	execl(weft, weft, "recover", dir, NULL);
	_exit(127);
}

static void recover_by_next_start(void)
{
	struct weft_recorder_opts opts = {.size = sizeof(opts), .dir = dir, .name = name};
	struct weft_recorder *rec;

	if (weft_recorder_open(&rec, &opts, NULL) < 0 || weft_recorder_start(rec, NULL) < 0 ||
	    weft_recorder_close(rec, NULL) < 0)
		_exit(1);
}

static int recover(int way)
{
	int i;

	if (way == 0)
		return finish(start(recover_by_command));
	if (way == 1)
		return finish(start(recover_by_next_start));
	for (i = 0; i < 4; i++)
		kill_after(start(recover_here), random_below(2500));
	return finish(start(recover_by_command));
}

static int fail(const char *what, uint64_t a, uint64_t b)
{
	fprintf(stderr, "kill: %s: %llu, %llu (in %s)\n", what, (unsigned long long)a, (unsigned long long)b, dir);
	return 1;
}

/* `whole`: everything that was published must be there, but for what the segments themselves say was dropped. */
static int check(struct tally *t, int whole)
{
	uint64_t missing = 0, i;
	int bad = 0;

	tally_init(t, SOURCES);
	tally_dir(t, dir);
	if (t->damaged)
		bad |= fail("segments that do not read", t->damaged, t->segments);
	if (t->undefined)
		bad |= fail("definitions missing", t->undefined, t->events);
	if (t->disorder)
		bad |= fail("events twice or out of order", t->disorder, t->events);
	for (i = 0; i < SOURCES; i++) {
		uint64_t last = t->sources[i].last;

		if (published[i] > last)
			last = published[i];
		missing += last - t->sources[i].count;
	}
	if (whole && missing > t->lost)
		bad |= fail("events missing, and lost by their own account", missing, t->lost);
	if (tally_files(dir, ".active") || tally_files(dir, ".rings") || tally_files(dir, ".broken"))
		bad |= fail("files left over", (uint64_t)tally_files(dir, ".active"),
			    (uint64_t)tally_files(dir, ".rings"));
	return bad;
}

static void remove_all(const char *pattern)
{
	glob_t found;
	size_t i;

	if (glob(pattern, 0, NULL, &found) == 0)
		for (i = 0; i < found.gl_pathc; i++)
			unlink(found.gl_pathv[i]);
	globfree(&found);
}

static size_t shared_files(void)
{
	char pattern[128];
	glob_t found;
	size_t n = 0;

	snprintf(pattern, sizeof(pattern), "/dev/shm/weft-*-%s-*", name);
	if (glob(pattern, 0, NULL, &found) == 0)
		n = found.gl_pathc;
	globfree(&found);
	return n;
}

static void cut(void)
{
	char pattern[128];
	glob_t found;

	snprintf(pattern, sizeof(pattern), "/dev/shm/weft-*-%s-*", name);
	remove_all(pattern);
	snprintf(pattern, sizeof(pattern), "%s/*.rings", dir);
	remove_all(pattern);
	snprintf(pattern, sizeof(pattern), "%s/*.active", dir);
	if (glob(pattern, 0, NULL, &found) == 0) {
		struct stat st;

		if (stat(found.gl_pathv[0], &st) == 0 && st.st_size > 64)
			(void)!truncate(found.gl_pathv[0], 64 + (off_t)random_below((uint32_t)st.st_size - 64));
	}
	globfree(&found);
}

/* Somebody else who recovers, elsewhere, all the time: that must not be in the way. */
static void neighbour(void)
{
	while (getppid() != 1 && weft_recover(base, NULL, NULL, NULL) >= 0)
		sleep_us(200);
}

static int one_round(int round, int cuts, struct tally *t)
{
	char pattern[128];
	int bad;

	memset((void *)published, 0, SOURCES * sizeof(*published));
	snprintf(dir, sizeof(dir), "%s/%d", base, round);
	kill_after(start(record), random_below(LIFE_US));
	mkdir(dir, 0755); /* the kill may have come before the first call */
	if (cuts)
		cut();
	bad = recover(cuts ? 0 : round % 3) != 0 ? fail("recovery's exit status", (uint64_t)round % 3, 0) : 0;
	bad |= check(t, !cuts);
	if (!bad) {
		snprintf(pattern, sizeof(pattern), "%s/*", dir);
		remove_all(pattern);
		rmdir(dir);
	}
	return bad;
}

int main(int argc, char **argv)
{
	uint64_t events = 0, from_kill = 0, segments = 0, lost = 0;
	const char *tmp = getenv("TMPDIR");
	int rounds, cuts, i, bad = 0;
	pid_t other;

	if (argc != 5) {
		fprintf(stderr, "usage: kill_writer kills|cuts ROUNDS SEED WEFT\n");
		return 2;
	}
	cuts = !strcmp(argv[1], "cuts");
	rounds = atoi(argv[2]);
	seed = (unsigned)strtoul(argv[3], NULL, 10);
	weft = argv[4];
	snprintf(name, sizeof(name), "kill%d", (int)getpid());
	snprintf(base, sizeof(base), "%.30s/weft-kill-XXXXXX", tmp && *tmp ? tmp : "/tmp");
	published = mmap(NULL, SOURCES * sizeof(*published), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (!mkdtemp(base) || published == MAP_FAILED)
		return 2;
	other = start(neighbour);
	for (i = 0; i < rounds && !bad; i++) {
		struct tally t;

		bad = one_round(i, cuts, &t);
		events += t.events;
		segments += t.segments;
		from_kill += t.recovered;
		lost += t.lost;
		tally_fini(&t);
	}
	kill_after(other, 0);
	if (!bad && shared_files())
		bad = fail("ring files left in /dev/shm", shared_files(), 0);
	if (!bad)
		rmdir(base);
	printf("%d %s, seed %s: %llu events in %llu segments, %llu of them recovered, %llu lost\n", i, argv[1], argv[3],
	       (unsigned long long)events, (unsigned long long)segments, (unsigned long long)from_kill,
	       (unsigned long long)lost);
	return bad;
}
