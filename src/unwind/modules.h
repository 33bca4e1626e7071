/* SPDX-License-Identifier: Apache-2.0 */
/* The modules of a process, sorted by address, each with its unwind table, which may come later than the module. Else
 * a set does not change; when modules come or go, a new set takes its place with one store, and the old one is freed
 * once no handler can still be in it.
 * Handlers count themselves in and out: whoever is in the old set was counted before the store, so a count of zero
 * after it means that nobody is. There are two counts, of which newcomers use one at a time, so that the other falls
 * to zero however many come. */
#ifndef WEFT_UNWIND_MODULES_H
#define WEFT_UNWIND_MODULES_H

#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"
#include "unwind/table.h"

#define WEFT__BUILD_ID_MAX 32

enum weft__module_kind { WEFT__MODULE_PROGRAM, WEFT__MODULE_LIBRARY, WEFT__MODULE_VDSO };

struct weft__module {
	uint32_t id; /* of this process, never used again: a module that is loaded twice is two modules */
	uint32_t refs;
	uint8_t kind;
	uint8_t code_readable; /* in this process: one executable segment, which may be read, too */
	uint8_t stays;         /* the program, what it was linked with, the vDSO and weft itself: nobody unloads them */
	uint8_t build_id_n;
	uint8_t build_id[WEFT__BUILD_ID_MAX];
	uint64_t start, end;           /* all of it, mapped */
	uint64_t bias;                 /* mapped address - address in the file's headers */
	uint64_t text_start, text_end; /* what is executable of it, mapped */
	uint64_t text_offset;          /* where text_start is in the file */
	char *path;
	struct weft__cfi_input mapped; /* of one that stays: its .eh_frame where it is; hdr is NULL: cannot be used */
	uint32_t wanted;               /* HOT: a walk needed its table, which was not there */
	uint32_t pending;              /* its table is not made yet; then, and only then, the next two are written */
	struct weft__unwind_table *table; /* NULL: none could be made */
	int table_error;                  /* why, negative */
	int busy;                         /* somebody is making the table */
	int fd;                           /* and reads this file for it; -1: none */
};

/* Any context. The table as far as it is there. */
static inline const struct weft__unwind_table *weft__module_table(const struct weft__module *module)
{
	return load_acquire(&module->pending) ? NULL : module->table;
}

/* address -> rule, shared by all threads. An entry is two words; `check` is the address xor the rule, so a reader
 * that sees halves of two writes sees a miss. */
struct weft__unwind_slot {
	uint64_t check;
	uint64_t rule;
};

#define WEFT__UNWIND_CACHE_BITS 14

struct weft__modules {
	uint32_t n;
	struct weft__module **module;
	const uint64_t *start; /* of each, and the end of the last: the search looks at nothing else */
	struct weft__unwind_slot *cache;
	struct weft__modules *next; /* in the list of those to be freed */
	uint32_t drained;           /* which counts have been zero since then */
	size_t memory_bytes;
};

/* CALLER, COLLECTOR and the thread that makes tables; they wait for each other on a mutex, but not while a table is
 * made. */

/* Looks whether modules have come or gone since the last time and makes the new set, in which new modules have no
 * tables yet: soon done. 1: there is a new one; 0: nothing changed; negative: errno, and the old set stays. */
int weft__modules_look(void);
/* Makes the table of one module that has none yet, which can be used from then on: those that a walk needed come
 * first, then those that stay, and the small ones before the large. `halt`, which may be NULL, is asked now and then
 * whether to leave it. 1: there may be more; 0: there was none; -EAGAIN: modules have come or gone, look first;
 * -ECANCELED, -ENOMEM. */
int weft__modules_compile(int (*halt)(void));
/* Looks, and makes all tables. 1: something was new; 0: nothing was; negative: errno, and what is there stays. */
int weft__modules_refresh(void);
/* Whether there is something to look at or to make. Does not wait. */
int weft__modules_stale(void);
/* No set any more. Waits until no handler is in the old ones and frees them. */
void weft__modules_stop(void);
/* Around a fork, so that the child finds nothing half done, in here or in the loader. */
void weft__modules_lock(void);
void weft__modules_unlock(void);
/* In the child of a fork, whether or not it was locked: counts and work of threads that are not there any more are
 * forgotten. */
void weft__modules_forked(void);
/* Frees what is not in use any more; answers how many sets still wait. weft__modules_refresh does it too. */
unsigned weft__modules_sweep(void);

/* A set of another process's modules, for copied stacks. Takes the modules over, in any order, also when it fails. */
int weft__modules_new(struct weft__modules **ret, struct weft__module **module, uint32_t n);
void weft__modules_free(struct weft__modules *set);
/* Zeroed, with one reference; NULL when out of memory. */
struct weft__module *weft__module_new(const char *path);
void weft__module_free(struct weft__module *module);

/* HOT. Every enter has its leave, also when it answers NULL, with the number that it gave. In between the set and its
 * modules stay. */
const struct weft__modules *weft__modules_enter(uint32_t *visit);
void weft__modules_leave(uint32_t visit);

/* HOT. The module at an address, or NULL. */
static inline const struct weft__module *weft__modules_find(const struct weft__modules *set, uint64_t addr)
{
	uint32_t at = 0, n = set->n;

	if (!n)
		return NULL;
	while (n > 1) {
		uint32_t half = n / 2;

		at = set->start[at + half] <= addr ? at + half : at;
		n -= half;
	}
	return addr >= set->module[at]->start && addr < set->module[at]->end ? set->module[at] : NULL;
}

#endif
