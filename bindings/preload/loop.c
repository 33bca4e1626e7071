/* SPDX-License-Identifier: Apache-2.0 */
#include "preload.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>

#include "symbol.h"
#include "weft/weft.h"

#define WAITS_MIN 2      /* that make a loop */
#define FDS_LOOKED_AT 64 /* of a poll */
#define FDS_FEW 8        /* that are asked for, whether they are open */
#define ROW_LONG 16      /* waits in a row, and the time they take, after which the loop is taken to be over */
#define ROW_LONG_NS UINT64_C(10000000000)
#define SAME_STACK ((uintptr_t)1 << 20) /* frames that are further from each other may be on different ones */

static void fds_add(struct preload_fds *fds, int fd)
{
	if (fd >= 0)
		fds->bits[fd / 64 % 4] |= UINT64_C(1) << fd % 64;
}

static void fds_count(struct preload_fds *fds)
{
	for (int i = 0; i < 4; i++)
		fds->n += (uint32_t)__builtin_popcountll(fds->bits[i]);
}

static struct preload_fds fds_of_poll(const struct preload_wait *wait)
{
	const struct pollfd *poll = wait->at;
	struct preload_fds fds = {0};

	for (uint32_t i = 0; poll && i < wait->n && i < FDS_LOOKED_AT; i++)
		fds_add(&fds, poll[i].fd);
	fds_count(&fds);
	return fds;
}

static struct preload_fds fds_of_select(const struct preload_wait *wait)
{
	struct preload_fds fds = {0};
	uint32_t n = wait->n < FD_SETSIZE ? wait->n : FD_SETSIZE, i, at;
	uint64_t word;

	for (i = 0; i < 3; i++)
		for (at = 0; wait->sets[i] && at < n; at += 64) {
			memcpy(&word, (const char *)wait->sets[i] + at / 8, sizeof(word));
			fds.bits[at / 64 % 4] |= n - at < 64 ? word & ((UINT64_C(1) << (n - at)) - 1) : word;
		}
	fds_count(&fds);
	return fds;
}

static struct preload_fds fds_of(const struct preload_wait *wait)
{
	if (wait->family == PRELOAD_POLL)
		return fds_of_poll(wait);
	if (wait->family == PRELOAD_SELECT)
		return fds_of_select(wait);
	return (struct preload_fds){0};
}

static uint32_t fds_common(const struct preload_fds *a, const struct preload_fds *b)
{
	uint32_t n = 0;

	for (int i = 0; i < 4; i++)
		n += (uint32_t)__builtin_popcountll(a->bits[i] & b->bits[i]);
	return n;
}

static bool is_open(int fd)
{
	int saved = errno;
	bool is = fcntl(fd, F_GETFD) >= 0;

	errno = saved;
	return is;
}

/* How many of A that are not in B are open, and how many there are. Numbers are modulo 256, so only of small ones it
 * can be said. */
static uint32_t fds_open(const struct preload_fds *a, const struct preload_fds *b, uint32_t *all)
{
	uint32_t open = 0;

	*all = 0;
	for (int fd = 0; fd < 256; fd++)
		if (a->bits[fd / 64] & ~(b ? b->bits[fd / 64] : 0) & UINT64_C(1) << fd % 64) {
			++*all;
			if (*all <= FDS_FEW)
				open += is_open(fd);
		}
	return open;
}

/* epoll and io_uring are for loops; poll and select are for much else, too. */
static bool by_descriptor(const struct preload_loop *loop)
{
	return loop->family == PRELOAD_EPOLL || loop->family == PRELOAD_URING;
}

/* From one wait to the next a loop has some more descriptors, or closed some. A wait for a few of those that are
 * still open is inside a tick, for one that is served there. */
static bool same_fds(const struct preload_loops *loops, const struct preload_loop *loop,
		     const struct preload_wait *wait, const struct preload_fds *fds)
{
	uint32_t common = fds_common(&loop->fds, fds), all, open;

	if (loop->site != wait->site)
		return fds->n >= 2 && loop->fds.n >= 2 && common * 2 >= (fds->n > loop->fds.n ? fds->n : loop->fds.n);
	if (fds->n == 0)
		return wait->at && loop->at == wait->at;
	if (!common || common == loop->fds.n || fds->n * 2 > loop->fds.n || loops->lenient)
		return common != 0;
	open = fds_open(&loop->fds, fds, &all);
	return open * 2 < (all < FDS_FEW ? all : FDS_FEW);
}

static bool same(const struct preload_loops *loops, const struct preload_loop *loop, const struct preload_wait *wait,
		 const struct preload_fds *fds)
{
	if (loop->family != wait->family)
		return false;
	return by_descriptor(loop) ? loop->id == wait->id : same_fds(loops, loop, wait, fds);
}

static bool is_gone(const struct preload_loop *loop)
{
	uint32_t all;

	if (by_descriptor(loop))
		return loop->fd >= 0 && !is_open(loop->fd);
	return loop->fds.n <= FDS_FEW && fds_open(&loop->fds, NULL, &all) == 0;
}

static void seen(struct preload_loop *loop, const struct preload_wait *wait, const struct preload_fds *fds)
{
	loop->family = wait->family;
	loop->fd = wait->fd;
	loop->id = wait->id;
	loop->site = wait->site;
	loop->frame = wait->frame;
	loop->at = wait->at;
	loop->n = wait->n;
	loop->first = wait->family == PRELOAD_POLL && wait->n > 0 ? ((const struct pollfd *)wait->at)[0].fd : -1;
	if (fds->n) /* the loop may have none for a while */
		loop->fds = *fds;
	loop->waits++;
	loop->parks += wait->parks;
}

static struct preload_loop *other(struct preload_loops *loops, const struct preload_wait *wait,
				  const struct preload_fds *fds)
{
	struct preload_loop *oldest = &loops->others[0];
	int i;

	for (i = 0; i < PRELOAD_OTHERS; i++) {
		if (same(loops, &loops->others[i], wait, fds))
			return &loops->others[i];
		if (loops->others[i].stamp < oldest->stamp)
			oldest = &loops->others[i];
	}
	*oldest = (struct preload_loop){0};
	return oldest;
}

static void count_row(struct preload_loops *loops, struct preload_loop *loop, uint64_t tick)
{
	if (loop->row == 0 || loop->between != loops->now.waits) {
		loop->row = 0;
		loop->since = tick;
		loop->between = loops->now.waits;
	}
	loop->row++;
	loop->stamp = ++loops->stamp;
}

static bool is_deeper(const struct preload_loop *a, const struct preload_loop *b)
{
	return a->frame < b->frame && b->frame - a->frame < SAME_STACK;
}

/* Whether B, which came again, is a loop rather than A, the loop so far. *BESIDE: although A may still wait inside
 * it. */
static bool takes_over(const struct preload_loops *loops, const struct preload_loop *a, const struct preload_loop *b,
		       uint64_t tick, bool *beside)
{
	bool in_a_row = b->row >= WAITS_MIN;

	*beside = false;
	if (in_a_row && (b->row & (b->row - 1)) == 0 && is_gone(a))
		return true;
	if (b->parks < WAITS_MIN)
		return false;
	*beside = true;
	if (a->parks == 0)
		return true;
	*beside = !in_a_row;
	if (b->site != loops->nested) {
		if (by_descriptor(b) && !by_descriptor(a))
			return a->fds.n < 2 || in_a_row || !is_deeper(b, a);
		if (!by_descriptor(b) && !by_descriptor(a) && b->fds.n > a->fds.n)
			return in_a_row || is_deeper(a, b);
	}
	*beside = false;
	return b->row >= ROW_LONG && weft_tick_ns(tick - b->since) >= ROW_LONG_NS;
}

/* Whether the loop that lost its place was outside of the present one all the time. */
static bool was_outside(const struct preload_loop *before, const struct preload_loop *now,
			const struct preload_wait *wait)
{
	struct preload_loop here = {.frame = wait->frame};

	if (by_descriptor(before))
		return true;
	return by_descriptor(now) ? before->fds.n >= 2 && is_deeper(now, &here) : !is_deeper(&here, now);
}

static enum preload_judged found(struct preload_loops *loops, struct preload_loop loop)
{
	loops->now = loop;
	loops->number++;
	return PRELOAD_FOUND;
}

static enum preload_judged come_back(struct preload_loops *loops, const struct preload_wait *wait,
				     const struct preload_fds *fds)
{
	struct preload_loop loop = loops->before;

	loops->before.family = PRELOAD_NONE;
	if (loops->now.family && loops->now.site == loop.site)
		loops->lenient = true;
	else if (loops->now.family)
		loops->nested = loops->now.site;
	seen(&loop, wait, fds);
	return found(loops, loop);
}

/* What the loader knows of an address, without its lock: a thread may have that for as long as a library begins, and
 * in the child of a fork for good. */
#if defined(DLFO_STRUCT_HAS_EH_DBASE)
static const char *module_of(uintptr_t site)
{
	struct dl_find_object found;

	if (_dl_find_object((void *)site, &found) < 0 || !found.dlfo_link_map)
		return "";
	return found.dlfo_link_map->l_name[0] ? found.dlfo_link_map->l_name : program_invocation_name;
}
#else
static const char *module_of(uintptr_t site)
{
	Dl_info info;

	return dladdr((void *)site, &info) && info.dli_fname ? info.dli_fname : "";
}
#endif

#define LIBUV_WAIT_BYTES 8192
static uintptr_t libuv_wait
	PRELOAD_NEAR; /* libuv's function that waits, of a program that has libuv inside it; 0: none */

void weft__preload_loop_init(const struct symbol_objects *objects)
{
	if (weft__preload_may_have(objects, "uv__io_poll"))
		libuv_wait = (uintptr_t)dlsym(RTLD_DEFAULT, "uv__io_poll");
}

bool weft__preload_site_loops(uintptr_t site)
{
	static const char *const modules[] = {"libuv.",   "libevent", "libev.", "node",    "python", "libnio.",
					      "libglib-", "libruby",  "redis",  "select.", "nginx"};
	static uintptr_t looped; /* the last one that did: threads of a program mostly have the same */
	const char *path, *name;
	size_t i;

	if (__atomic_load_n(&looped, __ATOMIC_RELAXED) == site)
		return true;
	path = module_of(site);
	name = strrchr(path, '/');
	name = name ? name + 1 : path;
	for (i = 0; i < sizeof(modules) / sizeof(modules[0]); i++)
		if (strncmp(name, modules[i], strlen(modules[i])) == 0)
			break;
	if (i == sizeof(modules) / sizeof(modules[0]) && (!libuv_wait || site - libuv_wait >= LIBUV_WAIT_BYTES))
		return false;
	__atomic_store_n(&looped, site, __ATOMIC_RELAXED);
	return true;
}

/* Whether it was seen often enough to be one. */
static bool is_loop(const struct preload_loops *loops, const struct preload_loop *loop)
{
	return loop->waits >= WAITS_MIN ||
	       (loop->family == PRELOAD_EPOLL && !loops->now.family && weft__preload_site_loops(loop->site));
}

enum preload_judged weft__preload_judge(struct preload_loops *loops, const struct preload_wait *wait)
{
	struct preload_fds fds = fds_of(wait);
	struct preload_loop *now = &loops->now, *loop, next = {0};
	bool beside = true;

	if (now->family && same(loops, now, wait, &fds)) {
		seen(now, wait, &fds);
		return PRELOAD_MINE;
	}
	if (wait->family <= PRELOAD_POLL && fds.n == 0)
		return PRELOAD_OTHER;
	if (loops->before.family && same(loops, &loops->before, wait, &fds) &&
	    (!now->family || was_outside(&loops->before, now, wait)))
		return come_back(loops, wait, &fds);
	/* A loop that is made anew, in the place of one that is over. */
	if (wait->site == (now->family ? now->site : loops->last) &&
	    (!now->family || (now->family == wait->family && is_gone(now)))) {
		seen(&next, wait, &fds);
		return found(loops, next);
	}
	if (wait->family <= PRELOAD_POLL && !wait->parks)
		return PRELOAD_OTHER;
	loop = other(loops, wait, &fds);
	seen(loop, wait, &fds);
	count_row(loops, loop, wait->tick);
	if (!now->family && by_descriptor(loop) && !is_loop(loops, loop))
		return PRELOAD_FIRST;
	if (!is_loop(loops, loop) || (now->family && !takes_over(loops, now, loop, wait->tick, &beside)))
		return PRELOAD_OTHER;
	if (!beside)
		loops->before = *now;
	next = *loop;
	loop->family = PRELOAD_NONE;
	return found(loops, next);
}

void weft__preload_forget(struct preload_loops *loops)
{
	loops->last = loops->now.site;
	loops->now.family = PRELOAD_NONE;
	loops->number++;
}
