/* SPDX-License-Identifier: Apache-2.0 */
/* Polls that are only counted and leave the CPU: what they cost, and what a slow poll behind them still knows. */
#include <sys/prctl.h>

#include "record/event/account.h"
#include "session.h"

#define ROUNDS 12
#define SLACK_NS 50000u /* what the issue allows, or 2 % */

static const struct weft_recorder_opts slow = {.sample_hz = WEFT_OFF,
					       .switches = WEFT_SWITCH_OFF,
					       .wait_ns = MS,
					       .poll_mode = WEFT_POLLS_SLOW,
					       .poll_slow_ns = MS};

struct seen {
	struct weft_event_view cpu[ROUNDS], next;
	uint64_t length_ns[ROUNDS];
	uint32_t n;
};

static uint64_t cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void compute(uint64_t ns)
{
	uint64_t until = cpu_ns() + ns;

	while (cpu_ns() < until)
		;
}

static void keep(const struct weft_segment *seg, const struct weft_event_view *ev, void *data)
{
	struct seen *seen = data;

	(void)seg;
	if (ev->kind == WEFT_KIND_POLL_CPU)
		seen->next = *ev;
	if (ev->kind != WEFT_KIND_POLL || WEFT_FIELD(ev, POLL, TASK) != 2 || seen->n == ROUNDS)
		return;
	seen->length_ns[seen->n] = WEFT_FIELD(ev, POLL, DURATION);
	if (seen->next.kind && seen->next.time_ns == ev->time_ns)
		seen->cpu[seen->n] = seen->next;
	seen->next.kind = 0;
	seen->n++;
}

static void short_poll(uint64_t nap_ns)
{
	weft_poll_begin(1, 0);
	session_sleep_ns(nap_ns);
	weft_poll_end();
}

#define START(rec)                                                                                                     \
	rec = session_start(&slow);                                                                                    \
	REQUIRE(rec);                                                                                                  \
	if (!(load_relaxed(&weft_gate.on) & WEFT_GATE_RSEQ)) {                                                         \
		CHECK_EQ(weft_recorder_close(rec, NULL), 0);                                                           \
		session_remove_dir();                                                                                  \
		SKIP("no restartable sequences here");                                                                 \
	}                                                                                                              \
	weft_wake(1, WEFT_WORKER_NONE)

/* Each round: short polls that leave the CPU, then a slow one that computes and sleeps. */
static void check_slow_polls(int64_t credit)
{
	uint64_t inner[ROUNDS], outer[ROUNDS], read;
	struct weft_recorder *rec;
	struct seen seen = {0};
	uint32_t i, j, unread = 0;

	START(rec);
	for (i = 0; i < ROUNDS; i++) {
		for (j = 0; j < 4; j++) {
			store_relaxed(&weft__account_credit.ns, credit);
			read = session_ring()->account.tick;
			short_poll(MS / 10);
			unread += session_ring()->account.tick == read;
		}
		outer[i] = cpu_ns();
		weft_poll_begin(2, 0);
		inner[i] = cpu_ns();
		compute(MS);
		session_sleep_ns(2 * MS);
		inner[i] = cpu_ns() - inner[i];
		weft_poll_end();
		outer[i] = cpu_ns() - outer[i];
	}
	session_read_back(rec, keep, &seen);
	CHECK_EQ(seen.n, ROUNDS);
	if (credit < 0)
		CHECK(unread > 2 * ROUNDS); /* one that is preempted in the account itself reads all the same */
	for (i = 0; i < seen.n; i++) {
		const uint64_t *f = seen.cpu[i].fields;
		uint64_t slack = SLACK_NS + seen.length_ns[i] / 50;

		REQUIRE(seen.cpu[i].kind != 0);
		REQUIRE(f[0] != WEFT_NOT_MEASURED);
		if (f[0] + f[2] + slack < inner[i] || f[0] > outer[i] + slack + f[2])
			printf("\t%llu us on the CPU, %llu unsure, in truth %llu to %llu\n",
			       (unsigned long long)f[0] / 1000, (unsigned long long)f[2] / 1000,
			       (unsigned long long)inner[i] / 1000, (unsigned long long)outer[i] / 1000);
		CHECK(f[0] + f[2] + slack >= inner[i]);
		CHECK(f[0] <= outer[i] + slack + f[2]);
		if (credit > 0 && f[2] > slack)
			printf("\t%llu us unsure\n", (unsigned long long)f[2] / 1000);
	}
}

TEST(a_slow_poll_knows_its_cpu_time_behind_counted_polls_that_slept)
{
	check_slow_polls(WEFT__ACCOUNT_FREE);
}

TEST(without_credit_counted_polls_read_nothing_and_a_slow_poll_says_what_is_unsure)
{
	check_slow_polls(INT64_MIN / 2);
}

/* What is unsure after one short poll is less than what matters. */
TEST(a_counted_poll_that_slept_for_a_moment_reads_no_clock)
{
	uint32_t i, unread = 0, looked = 0;
	struct weft_recorder *rec;
	uint64_t read, before;

	START(rec);
	CHECK_EQ(prctl(PR_SET_TIMERSLACK, 1), 0);
	for (i = 0; i < 500 && looked < ROUNDS; i++) {
		short_poll(2 * MS); /* a slow one: it reads the clock */
		session_sleep_ns(MS / 2);
		weft_poll_begin(2, 0);
		weft_poll_end();
		read = session_ring()->account.tick;
		before = session_now_ns();
		short_poll(1000);
		if (session_now_ns() - before >= SLACK_NS)
			continue; /* preempted for long */
		looked++;
		unread += session_ring()->account.tick == read;
	}
	CHECK(looked > 0);
	CHECK_EQ(unread, looked);
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	session_remove_dir();
}
