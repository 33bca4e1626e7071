/* SPDX-License-Identifier: Apache-2.0 */
/* What is in a ring file: the shared memory that outlives the process. All contexts; each field says who writes it.
 *
 *     page 0     struct rings_head
 *     facts      about process and machine, as records of the segment format; written at open, and again when sampling
 *                falls back
 *     defs       every definition registered so far, as records of the segment format; appended under the registry's
 *                mutex
 *     staging    what was drained from rings and is not yet in the segment file, in two halves; the collector's
 *     stacks     of samples, each once; two generations, of which handlers fill one (stacks.h)
 *     rings      one after the other: a page with struct ring_page, then its slots, then room for more of them; in
 *                memory: chunks.h
 *
 * An event moves from its ring to staging to the file, and each step frees the place behind it only after the place
 * ahead holds it. Killed between the two, an event is in both; ring number and slot number, which never repeat, say
 * so. */
#ifndef WEFT_RING_LAYOUT_H
#define WEFT_RING_LAYOUT_H

#include <stdint.h>

#include "record/ring/account.h"
#include "record/ring/polls.h"
#include "weft/ring.h"
#include "weft/segment.h"

#define RINGS_MAGIC "WEFTRNG1"
#define RINGS_VERSION 11
#define RING_PAGE 4096
#define RING_SLACK 128 /* slots kept free for handlers that arrive between check and take */
#define EVENT_SLOTS_MAX (1 + (WEFT_FIELDS_MAX + 1) / 2)
#define FACTS_BYTES 32768
#define DEFS_BYTES (2u << 20)
#define STAGING_BYTES (1u << 19) /* one block */
#define STAGINGS 2               /* one is filled while the other is encoded */
#define STACK_DEPTH_MAX 1024     /* frames; also of the unwinder */
#define STACK_TABLE 8192         /* entries of a generation's table; a power of two */
#define STACK_WORDS (1u << 17)   /* of a generation: 1 MiB */
#define CLOCKS 4
#define OWNER_LEAVING UINT32_MAX

struct rings_head {
	/* set at open, then constant */
	char magic[8];
	uint32_t version;
	uint32_t pid;
	uint8_t recording[16];
	uint32_t ring_slots; /* that a ring begins with */
	uint32_t ring_most;  /* that it may grow to */
	uint32_t max_rings;
	uint32_t quantum_ns;
	uint32_t tick_source;
	uint64_t facts_at, facts_used, defs_at, staging_at, stacks_at, rings_at, ring_stride, file_bytes;
	uint32_t facts_count;
	uint32_t has_stacks; /* there is memory behind them */
	char service[64];
	char dir[400];        /* where the link to the file is */
	uint64_t mount_space; /* in which that path means something; 0: not known */

	/* any thread, atomically */
	_Alignas(64) uint32_t n_rings; /* made so far; rings beyond have never been touched */
	uint64_t no_ring;              /* events dropped because there was no ring, and when */
	uint64_t no_ring_from, no_ring_to;
	uint64_t no_stack; /* samples dropped because there was no room for their stack, and when */
	uint64_t no_stack_from, no_stack_to;

	/* registry */
	_Alignas(64) uint64_t defs_used; /* published with release */
	uint32_t defs_count;

	/* collector */
	_Alignas(64) uint64_t staging_used[STAGINGS]; /* published with release */
	uint32_t staging_now;                         /* the half that is being filled; what is in the other is older */
	uint64_t no_ring_seen, no_stack_seen;
	uint32_t stacks_now; /* the generation that handlers fill, 0 or 1 */
	uint32_t next_stack; /* id */
	uint32_t next_stream;
	uint32_t clock_at; /* the last reading is clocks[clock_at % CLOCKS] */
	struct weft_clock clocks[CLOCKS];
	uint64_t paused_ns; /* since when the user has paused it, or 0; and since when the disk is full */
	uint64_t stuck_ns;
	uint64_t sequence; /* of the active segment */
	char active[256];  /* its file name */
};

/* The thread that a ring's events, from the tail on, belong to. */
struct ring_thread {
	uint32_t stream;
	uint32_t tid;
	uint32_t worker;
	char name[16];
	uint64_t first_ns;
};

/* The context that a thread has after the events of it that are in files: the next segment begins with it. */
#define CONTEXT_FIELDS WEFT_FIELDS_OF_CONTEXT
struct ring_context {
	uint32_t stream;
	uint64_t segment; /* in which it stands, plus 1 */
	uint64_t fields[CONTEXT_FIELDS];
};

struct ring_page {
	struct weft_ring hot;   /* owner thread */
	struct polls polls;     /* owner thread */
	struct account account; /* owner thread */

	/* owner thread, slow path */
	_Alignas(64) uint64_t lost;      /* events dropped */
	uint64_t lost_from, lost_to;     /* ticks of the first not yet seen and of the last */
	uint64_t capped;                 /* polls not reported because of poll_cap */
	uint64_t capped_from, capped_to; /* in the same way */
	uint32_t owner;                  /* tid, or 0: free, or OWNER_LEAVING */
	uint32_t worker;                 /* id, or WEFT_WORKER_NONE */
	uint32_t asked;                  /* runtimes that were asked who this thread is */
	uint32_t slots_first;            /* that the ring began with; constant */
	uint32_t backed;                 /* of these, how many have memory behind them; 0: all */
	int32_t sched_fd;                /* /proc/self/task/TID/schedstat plus 1; 0: not open, -1: cannot */

	/* collector */
	_Alignas(64) uint64_t tail; /* slots below are in staging or further */
	uint64_t lost_seen;
	uint64_t capped_seen;
	uint64_t counted_seen[2]; /* of hot.counted, what was recorded */
	uint64_t parks_from;      /* tick of the last look at hot.parked; 0: there was none */
	uint32_t granted;         /* slots that have memory behind them, when more than the ring began with */
	uint32_t wake;            /* so many filled slots wake the collector */
	struct ring_thread thread;
	struct ring_context context;

	/* Who raises one of these to the owner's count reports the difference: the collector, or the owner when it
	 * ends. */
	_Alignas(64) uint32_t polls_reported[POLLS_COUNTS];
	struct poll_reporting {
		uint32_t count;  /* that the collector is reporting, plus 1; 0: none */
		uint32_t before; /* what it had been reported at */
		uint64_t slot;   /* of FOUND_NOW, in which the event begins */
	} reporting;             /* so that, killed between the two, it is known whether it is reported */
	/* Of hot.parks and, with the park that is open, of hot.parked; in the same way as polls_reported. */
	uint64_t parks_reported;
	uint64_t parked_reported;
};

_Static_assert(sizeof(struct weft_ring) == 128, "what an event needs is one cache line, and a park the next");
_Static_assert(sizeof(struct ring_page) <= RING_PAGE, "a ring's fields fit its page");
_Static_assert(sizeof(struct rings_head) <= RING_PAGE, "the head fits its page");
_Static_assert(sizeof(struct weft_slot) == 16, "slots are 16 bytes");

/* Stacks of samples. A stack is a few words in a row:
 *
 *     hash of the rest      compared before the rest is
 *     flags << 32 | n       of its n addresses
 *     id                    the collector's: what it is called in segments, or 0
 *     addresses             leaf first
 *
 * A reference to it is generation << 31 | (number of its first word + 1). */
enum { STACK_HASH, STACK_SIZE, STACK_ID, STACK_ADDRESSES };
#define STACK_REF(generation, word) ((uint32_t)(generation) << 31 | ((uint32_t)(word) + 1))
#define STACK_GENERATION(ref) ((ref) >> 31)
#define STACK_WORD(ref) (((ref)&0x7fffffffu) - 1)

struct stacks {
	_Alignas(64) uint64_t used;               /* words; any thread, atomically; what passes the end was not taken */
	uint32_t users;                           /* handlers inside */
	_Alignas(64) uint32_t table[STACK_TABLE]; /* by hash: number of the first word + 1 */
	uint64_t words[STACK_WORDS];
};
#define STACKS_BYTES (2 * (uint64_t)((sizeof(struct stacks) + RING_PAGE - 1) / RING_PAGE * RING_PAGE))

static inline struct stacks *stacks_at(void *base, const struct rings_head *head, uint32_t generation)
{
	return (struct stacks *)(void *)((char *)base + head->stacks_at + STACKS_BYTES / 2 * generation);
}

static inline char *staging_half(void *base, const struct rings_head *head, uint32_t half)
{
	return (char *)base + head->staging_at + (uint64_t)half * STAGING_BYTES;
}

static inline int staging_any(const struct rings_head *head)
{
	return head->staging_used[0] || head->staging_used[1];
}

/* A run in staging: the header, then n_slots slots or n_bytes of definition records, padded to 8 bytes. RUN_FOUND has
 * events of no ring, which the collector found out (record/found.h): where slots of rings have ticks, these have ns. */
enum { RUN_EVENTS = 1, RUN_DEFS = 2, RUN_FOUND = 3 };
struct staged_run {
	uint32_t type;
	uint32_t n;      /* slots, or bytes */
	uint32_t ring;   /* of slots; RUN_FOUND: FOUND_RING of its lane */
	uint32_t stream; /* of slots; RUN_DEFS: number of records */
	uint64_t first_slot;
};

/* What stands for the number of a ring in events of no ring: costs, then the lanes of record/found.h. */
#define COSTS_RING(head) ((head)->max_rings)
#define FOUND_RING(head, lane) ((head)->max_rings + 1 + (uint32_t)(lane))

/* Slots that a ring begins with may become this many: 256 KiB, unless they were more from the beginning. */
#define RING_GROWS 4
#define RING_GROWS_TO 16384
static inline uint32_t ring_slots_most(uint32_t slots)
{
	uint32_t most = slots < RING_GROWS_TO / RING_GROWS ? slots * RING_GROWS : RING_GROWS_TO;

	return most > slots ? most : slots;
}

/* How the kinds lie in slots, from the list in weft/kind.h. */
enum weft__packing { PACK_WORDS, PACK_PAIR, PACK_SAMPLE, PACK_NAME };
#define SLOTS_WORDS(n) (1 + (n) / 2)
#define SLOTS_PAIR(n) 1
#define SLOTS_SAMPLE(n) 2
#define SLOTS_NAME(n) 2

static inline uint32_t weft__kind_fields(uint32_t kind)
{
	static const uint8_t n_fields[WEFT_KIND_BUILTIN_END] = {
#define X(NAME, number, ...) [number] = WEFT_FIELDS_OF_##NAME,
		WEFT_KINDS(X, WEFT_KIND_NONE, WEFT_KIND_NONE)
#undef X
	};

	return n_fields[kind];
}

/* 0: there is no such kind. */
static inline uint32_t weft__kind_slots(uint32_t kind)
{
	static const uint8_t n_slots[WEFT_KIND_BUILTIN_END] = {
#define X(NAME, number, name, packing, ...) [number] = SLOTS_##packing(WEFT_FIELDS_OF_##NAME),
		WEFT_KINDS(X, WEFT_KIND_NONE, WEFT_KIND_NONE)
#undef X
	};

	return kind < WEFT_KIND_BUILTIN_END ? n_slots[kind] : 0;
}

/* Slots of the event that begins with `slot`; 0 when that is no event. */
static inline uint32_t event_slots(const struct weft_slot *slot)
{
	uint32_t kind = (uint32_t)(slot->w0 & 0xff);
	uint64_t n = slot->w1 >> 32;

	if (kind == WEFT_KIND_USER)
		return n <= WEFT_FIELDS_MAX ? 1 + (uint32_t)(n + 1) / 2 : 0;
	return weft__kind_slots(kind);
}

#endif
