/* SPDX-License-Identifier: Apache-2.0 */
/* The CPU quota of the process' cgroup, and how long it stopped the process. The kernel counts that for the cgroup
 * which has the quota: the process' own, or one above it. Both versions of cgroups are known, and those of a
 * container that sees its own cgroup as the root.
 *
 * Files are opened for each reading and closed again: at one reading a second that costs less than keeping them from
 * a program that closes what it finds. COLLECTOR. */
#ifndef WEFT_HOST_THROTTLE_H
#define WEFT_HOST_THROTTLE_H

#include <stdbool.h>
#include <stdint.h>

#include "segment/defs.h"

#define THROTTLE_LEVELS 4   /* cgroups above one another that have a quota */
#define THROTTLE_PATH 1024u /* bytes of a cgroup's path */

/* Sums over the CPUs, since the cgroup was made. */
struct weft__throttle_stat {
	uint64_t periods;      /* of the quota, in which anything ran */
	uint64_t times;        /* that it was used up */
	uint64_t throttled_ns; /* that CPUs were withheld */
	uint64_t pressure_ns;  /* in which some thread of the process' own cgroup wanted a CPU and had none */
};

struct weft__throttle {
	char root[THROTTLE_PATH];  /* where the cgroups are mounted; "": not known */
	char below[THROTTLE_PATH]; /* the process' own, below that */
	bool v1;
	int n_levels;
	struct {
		size_t bytes; /* of `below` that are its path */
		struct weft__throttle_stat last;
	} levels[THROTTLE_LEVELS];
	uint64_t quota_us, period_us; /* the tightest; 0 and 0: there is none */
	uint64_t pressure_ns;         /* at the last reading */
	uint64_t read_ns, found_ns;   /* when that was, and when quotas were looked for; 0: not yet */
};

/* What came since the last reading. */
struct weft__throttled {
	uint64_t span_ns;
	struct weft__throttle_stat more;
};

/* Looks for quotas, by what /proc says (`cgroup` and `mountinfo` of the process). True when the quota is another
 * than it was. Counters of cgroups that were known go on. */
bool weft__throttle_find(struct weft__throttle *t, const char *cgroup, const char *mountinfo, uint64_t now_ns);
/* Reads the counters. True when CPUs were withheld since the last reading. */
bool weft__throttle_read(struct weft__throttle *t, uint64_t now_ns, struct weft__throttled *ret);
/* cgroup.cpu.max, as cgroups of version 2 write it: the quota and the period, us. Nothing when there is no quota. */
void weft__throttle_facts(const struct weft__throttle *t, struct weft__defs *defs);

#endif
