/* SPDX-License-Identifier: Apache-2.0 */
/* Samples from emit to segment: each with the stack that it was given, whatever happens to the memory in between. */
#include "session.h"
#include "stall.h"

#include <signal.h>

#include "record/ring/stacks.h"
#include "record/sample/sample.h"
#include "unwind/modules.h"

#define ENGINE 77             /* of the samples that these tests make */
#define FAR UINT64_C(0x10000) /* addresses that no module has: FAR + number * 4096 + depth */

/* Sample `number`, whose stack and weight both say which one it is. */
static int emit(uint64_t number, uint32_t depth)
{
	uint64_t stack[STACK_DEPTH_MAX];
	struct weft__sample sample = {
		.tick = weft_now_ticks(),
		.user = stack,
		.n_user = depth,
		.user_flags = WEFT_STACK_COMPLETE,
		.engine = ENGINE,
		.cpu = (uint32_t)(number % 5),
		.weight_ns = number,
	};
	uint32_t i;

	for (i = 0; i < depth; i++)
		stack[i] = FAR + number * 4096 + i;
	return weft__sample_emit(&sample);
}

struct seen {
	uint64_t n;
	uint64_t wrong;
	uint64_t ids[2]; /* of the first two numbers */
};

static void look(const struct weft_segment *seg, const struct weft_event_view *ev, void *data)
{
	struct seen *seen = data;
	const struct weft_stack *stack;
	uint64_t number;
	uint32_t i;

	if (ev->kind != WEFT_KIND_SAMPLE || ev->n_fields != 5 || ev->fields[4] != ENGINE)
		return;
	seen->n++;
	number = ev->fields[2];
	stack = weft_segment_stack(seg, (uint32_t)ev->fields[0]);
	if (!stack || !stack->n_frames || stack->flags != WEFT_STACK_COMPLETE || ev->fields[1] ||
	    ev->fields[3] != number % 5) {
		seen->wrong++;
		return;
	}
	for (i = 0; i < stack->n_frames; i++)
		if (stack->frames[i].module || stack->frames[i].offset != FAR + number * 4096 + i) {
			seen->wrong++;
			return;
		}
	if (number < 2) {
		seen->wrong += seen->ids[number] && seen->ids[number] != stack->id;
		seen->ids[number] = stack->id;
	}
}

static struct seen read_all(struct tally *t)
{
	struct seen seen = {0};

	tally_init(t, 1);
	t->each = look;
	t->data = &seen;
	tally_dir(t, session_dir);
	CHECK_EQ(t->damaged, 0);
	CHECK_EQ(t->undefined, 0);
	return seen;
}

static struct weft_recorder *start(uint64_t flush_ns)
{
	return session_start(&(struct weft_recorder_opts){.sample_hz = 1, .drain_ns = MS, .flush_ns = flush_ns});
}

TEST(a_sample_comes_back_with_its_stack)
{
	struct weft_recorder *rec = start(0);
	struct tally t;
	struct seen seen;
	int i;

	REQUIRE(rec);
	for (i = 0; i < 100; i++)
		CHECK_EQ(emit((uint64_t)(i % 2), 40), 1);
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	seen = read_all(&t);
	CHECK_EQ(seen.n, 100);
	CHECK_EQ(seen.wrong, 0);
	CHECK(seen.ids[0] && seen.ids[1] && seen.ids[0] != seen.ids[1]);
	tally_fini(&t);
	session_remove_dir();
}

static size_t stacks_in(const char *path, uint32_t *first_id)
{
	struct weft_segment *seg = NULL;
	size_t i, n = 0, far = 0;

	if (!CHECK_EQ(weft_segment_open(&seg, path, NULL), 0))
		return 0;
	const struct weft_stack *stacks = weft_segment_stacks(seg, &n);
	for (i = 0; i < n; i++)
		if (stacks[i].n_frames == 7 &&
		    stacks[i].frames[0].offset == FAR + 4096) { /* not one of a real sample */
			far++;
			*first_id = stacks[i].id;
		}
	weft_segment_close(seg);
	return far;
}

TEST(a_stack_is_defined_once_in_each_segment_and_keeps_its_id)
{
	struct weft_recorder *rec = start(MS);
	char path[2][400];
	uint32_t id[2] = {0, 0};
	int k, i;

	REQUIRE(rec);
	for (k = 0; k < 2; k++) {
		for (i = 0; i < 50; i++) {
			emit(1, 7);
			if (i % 10 == 0)
				session_sleep_ns(2 * MS); /* over several blocks */
		}
		CHECK_EQ(weft_recorder_rotate(rec, path[k], sizeof(path[k]), NULL), 0);
		CHECK_EQ(stacks_in(path[k], &id[k]), 1);
	}
	CHECK(id[0] && id[0] == id[1]);
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	session_remove_dir();
}

#define STORM_APART 100000

static struct {
	uint64_t per_thread; /* or more, until enough are kept */
	uint64_t enough, until_ns;
	uint32_t depth;
	uint64_t kept, made;
} storm;

static int storm_goes_on(uint64_t i)
{
	return i < storm.per_thread || (__atomic_load_n(&storm.kept, __ATOMIC_RELAXED) < storm.enough &&
					session_now_ns() < storm.until_ns && i < STORM_APART);
}

static void *storm_main(void *data)
{
	uint64_t number = (uint64_t)(uintptr_t)data * STORM_APART;
	uint64_t i;

	for (i = 0; storm_goes_on(i); i++) {
		__atomic_fetch_add(&storm.kept, (uint64_t)emit(number + i, storm.depth), __ATOMIC_RELAXED);
		if (i % 64 == 0)
			session_sleep_ns(MS);
	}
	__atomic_fetch_add(&storm.made, i, __ATOMIC_RELAXED);
	return NULL;
}

/* Far more stacks than a generation holds: generations change while threads put stacks into them. */
TEST(no_stack_is_taken_for_another_when_generations_change)
{
	struct weft_recorder *rec = start(20 * MS);
	struct weft_recorder_stats stats;
	pthread_t threads[4];
	struct tally t;
	struct seen seen;
	uintptr_t i;

	REQUIRE(rec);
	storm.per_thread = SCALED(4000, 1000);
	storm.depth = 120;
	storm.kept = storm.made = 0;
	storm.enough = (uint64_t)STACK_WORDS / 123 + 1;
	storm.until_ns = session_now_ns() + 10000 * MS; /* the collector may have to wait for a CPU */
	for (i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, storm_main, (void *)i);
	for (i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	CHECK_EQ(weft_recorder_stop(rec, NULL), 0);
	stats = session_stats(rec);
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	seen = read_all(&t);
	CHECK_EQ(seen.wrong, 0);
	CHECK_EQ(seen.n, storm.kept);
	CHECK_EQ(seen.n + stats.samples_lost, storm.made);
	CHECK(storm.made >= 4 * storm.per_thread);
	CHECK(seen.n > (uint64_t)STACK_WORDS / 123); /* more than one generation holds */
	tally_fini(&t);
	session_remove_dir();
}

TEST(a_sample_without_room_for_its_stack_is_counted)
{
	struct weft_recorder *rec = session_start(&(struct weft_recorder_opts){.sample_hz = 1,
									       .switches = WEFT_SWITCH_OFF,
									       .drain_ns = 250 * MS,
									       .flush_ns = 10000 * MS,
									       .ring_bytes = 1 << 20});
	uint64_t n = STACK_WORDS / 900 * 4, kept = 0, i;
	sigset_t all, before;
	struct tally t;
	struct seen seen;

	REQUIRE(rec);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before); /* no real one comes in between */
	stall_begin();
	for (i = 0; i < n; i++)
		kept += (uint64_t)emit(i, 900);
	stall_end();
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	CHECK(kept < n); /* the collector made no room meanwhile */
	seen = read_all(&t);
	CHECK_EQ(seen.n, kept);
	CHECK_EQ(seen.wrong, 0);
	CHECK_EQ(t.lost, n - kept);
	CHECK(t.n_losses && t.losses[0].reason == WEFT_LOSS_SAMPLE);
	tally_fini(&t);
	session_remove_dir();
}

TEST(frames_name_their_module)
{
	struct weft_recorder *rec = start(0);
	uint64_t stack[2] = {(uint64_t)(uintptr_t)&storm_main + 1, (uint64_t)(uintptr_t)&getppid + 1};
	struct weft__sample sample = {.tick = weft_now_ticks(), .user = stack, .n_user = 2, .engine = ENGINE};
	struct weft_segment *seg = NULL;
	const struct weft_stack *stacks;
	char path[400];
	size_t n = 0, i, found = 0;

	REQUIRE(rec);
	CHECK(weft__modules_refresh() >= 0);
	CHECK_EQ(weft__sample_emit(&sample), 1);
	CHECK_EQ(weft_recorder_rotate(rec, path, sizeof(path), NULL), 0);
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	REQUIRE(weft_segment_open(&seg, path, NULL) == 0);
	stacks = weft_segment_stacks(seg, &n);
	for (i = 0; i < n; i++) {
		const struct weft_module *module[2];
		int k;

		if (stacks[i].n_frames != 2 || stacks[i].flags) /* a real sample has some */
			continue;
		found++;
		for (k = 0; k < 2; k++) {
			module[k] = weft_segment_module(seg, stacks[i].frames[k].module);
			CHECK(module[k] && module[k]->start + stacks[i].frames[k].offset == stack[k]);
		}
		CHECK(module[0] && strstr(module[0]->path, "sample_test"));
		CHECK(module[1] && strstr(module[1]->path, "libc.so"));
	}
	CHECK_EQ(found, 1);
	weft_segment_close(seg);
	session_remove_dir();
}

/* Killed with samples in the rings, in staging, and in the file. */
/* What `spoil`, when it is not NULL, does to the shared memory is done just before the kill. */
static struct seen killed_after(uint64_t flush_ns, uint64_t drain_ns, void (*spoil)(struct rings_head *head))
{
	struct tally t;
	struct seen seen;
	pid_t pid;

	session_fresh_dir();
	pid = fork();
	if (!pid) {
		struct weft_recorder_opts opts = {.size = sizeof(opts),
						  .dir = session_dir,
						  .sample_hz = 1,
						  .drain_ns = drain_ns,
						  .flush_ns = flush_ns};
		struct weft_recorder *rec;
		uint64_t i;

		if (weft_recorder_open(&rec, &opts, NULL) < 0 || weft_recorder_start(rec, NULL) < 0)
			_exit(1);
		for (i = 0; i < 600; i++) {
			emit(i % 200, 30);
			if (i % 100 == 0)
				session_sleep_ns(3 * MS);
		}
		if (spoil)
			spoil(weft__hot.head);
		raise(SIGKILL);
	}
	CHECK_EQ(session_wait(pid), -1);
	CHECK_EQ(weft_recover(session_dir, NULL, NULL, NULL), 1);
	seen = read_all(&t);
	CHECK_EQ(seen.n, 600);
	CHECK_EQ(t.damaged, 0);
	tally_fini(&t);
	session_remove_dir();
	return seen;
}

static void killed_at(uint64_t flush_ns, uint64_t drain_ns)
{
	CHECK_EQ(killed_after(flush_ns, drain_ns, NULL).wrong, 0);
}

TEST(samples_in_rings_survive_a_kill)
{
	killed_at(10000 * MS, 250 * MS);
}

TEST(samples_in_staging_survive_a_kill)
{
	killed_at(10000 * MS, MS);
}

TEST(samples_partly_in_the_file_survive_a_kill)
{
	killed_at(MS, MS);
}

static void no_next_stack(struct rings_head *head)
{
	head->next_stack = 0;
}

static void last_next_stack(struct rings_head *head)
{
	head->next_stack = UINT32_MAX;
}

/* 0 is no id of a stack: a definition under it makes its whole block unreadable. */
TEST(a_spoiled_number_of_stacks_spoils_no_definitions)
{
	CHECK_EQ(killed_after(10000 * MS, 250 * MS, no_next_stack).wrong, 0);
	killed_after(10000 * MS, 250 * MS, last_next_stack);
}

TEST(nothing_is_emitted_when_sampling_is_off)
{
	struct weft_recorder *rec = session_start(&(struct weft_recorder_opts){.sample_hz = WEFT_OFF});

	REQUIRE(rec);
	CHECK_EQ(emit(1, 3), 0);
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	CHECK_EQ(emit(1, 3), 0);
	session_remove_dir();
}
