/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that the program locks. The kernel refuses mlockall() to a program without privilege when all of its address
 * space is more than RLIMIT_MEMLOCK, which is 8 MiB as a rule; weft's part alone is more. So weft knows what it mapped
 * (its calls come here by the linker's --wrap). When the kernel refuses what it would not refuse without weft, the rest
 * is locked mapping by mapping. What weft maps later is not locked either, and takes nothing of the limit for longer
 * than a page or a stack does. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "preload.h"

#define RANGES 1024 /* more are not known, and locked as the program's are */
#define PAGE 4096ul

struct range {
	uintptr_t start; /* 0: free */
	size_t bytes;    /* 0: all of the mapping that START is in */
};

extern char __ehdr_start[] __attribute__((visibility("hidden")));
extern char _end[] __attribute__((visibility("hidden")));

void *__real_mmap(void *at, size_t bytes, int prot, int flags, int fd, off_t offset);
int __real_munmap(void *at, size_t bytes);
void *__real_mremap(void *at, size_t old, size_t bytes, int flags, ...);
void *__wrap_mmap(void *at, size_t bytes, int prot, int flags, int fd, off_t offset);
int __wrap_munmap(void *at, size_t bytes);
void *__wrap_mremap(void *at, size_t old, size_t bytes, int flags, ...);

static struct range ranges[RANGES];
static uint32_t ranges_end;  /* no range behind that */
static uint32_t locks_later; /* the program locks what is mapped from now on */

static void note(uintptr_t start, size_t bytes)
{
	for (uint32_t i = 0; i < RANGES; i++) {
		uintptr_t none = 0;
		uint32_t end = __atomic_load_n(&ranges_end, __ATOMIC_RELAXED);

		if (!__atomic_compare_exchange_n(&ranges[i].start, &none, start, false, __ATOMIC_ACQ_REL,
						 __ATOMIC_RELAXED))
			continue;
		__atomic_store_n(&ranges[i].bytes, bytes, __ATOMIC_RELEASE);
		while (end <= i && !__atomic_compare_exchange_n(&ranges_end, &end, i + 1, false, __ATOMIC_ACQ_REL,
								__ATOMIC_RELAXED))
			;
		return;
	}
}

static void forget(uintptr_t start)
{
	for (uint32_t i = 0; i < __atomic_load_n(&ranges_end, __ATOMIC_ACQUIRE); i++)
		if (__atomic_load_n(&ranges[i].start, __ATOMIC_ACQUIRE) == start)
			__atomic_store_n(&ranges[i].start, 0, __ATOMIC_RELEASE);
}

/* One page is locked, let go, and made as large as it is to be: so it stays as it is. */
static void *map_unlocked(void *at, size_t bytes, int prot, int flags, int fd, off_t offset)
{
	size_t first = bytes < PAGE ? bytes : PAGE;
	char *page = __real_mmap(at, first, prot, flags, fd, offset), *all = page;

	if (page == MAP_FAILED)
		return page;
	munlock(page, first);
	if (bytes > first)
		all = __real_mremap(page, first, bytes, MREMAP_MAYMOVE);
	if (all == MAP_FAILED)
		__real_munmap(page, first);
	return all;
}

void *__wrap_mmap(void *at, size_t bytes, int prot, int flags, int fd, off_t offset)
{
	void *got = __atomic_load_n(&locks_later, __ATOMIC_RELAXED) && !(flags & MAP_FIXED)
			    ? map_unlocked(at, bytes, prot, flags, fd, offset)
			    : __real_mmap(at, bytes, prot, flags, fd, offset);

	if (got != MAP_FAILED)
		note((uintptr_t)got, bytes);
	return got;
}

/* A part that goes leaves the rest unknown: it is locked then, as the program's. */
int __wrap_munmap(void *at, size_t bytes)
{
	forget((uintptr_t)at);
	return __real_munmap(at, bytes);
}

void *__wrap_mremap(void *at, size_t old, size_t bytes, int flags, ...)
{
	void *to = NULL, *got;
	va_list more;

	if (flags & MREMAP_FIXED) {
		va_start(more, flags);
		to = va_arg(more, void *);
		va_end(more);
	}
	got = __real_mremap(at, old, bytes, flags, to);
	if (got == MAP_FAILED)
		return got;
	if (old)
		forget((uintptr_t)at);
	if (to)
		forget((uintptr_t)to);
	note((uintptr_t)got, bytes);
	return got;
}

void weft__preload_stack_begin(void)
{
	forget((uintptr_t)pthread_self());
	note((uintptr_t)pthread_self(), 0);
	if (__atomic_load_n(&locks_later, __ATOMIC_RELAXED))
		munlock((const void *)((uintptr_t)pthread_self() & ~(PAGE - 1)), PAGE); /* what it used so far */
}

void weft__preload_stack_theirs(void)
{
	forget((uintptr_t)pthread_self());
}

/* The first range of weft's that is in the mapping, or reaches into it, from FROM on. False: none. */
static bool next_range(uintptr_t from, uintptr_t low, uintptr_t high, uintptr_t *start, uintptr_t *end)
{
	*start = high;
	for (uint32_t i = 0; i <= __atomic_load_n(&ranges_end, __ATOMIC_ACQUIRE); i++) {
		bool last = i == __atomic_load_n(&ranges_end, __ATOMIC_ACQUIRE); /* the library itself */
		uintptr_t a = last ? (uintptr_t)__ehdr_start : __atomic_load_n(&ranges[i].start, __ATOMIC_ACQUIRE);
		size_t bytes =
			last ? (size_t)(_end - __ehdr_start) : __atomic_load_n(&ranges[i].bytes, __ATOMIC_ACQUIRE);
		uintptr_t b = (a + bytes + PAGE - 1) & ~(PAGE - 1);

		if (a && !bytes && a >= low && a < high)
			a = low, b = high;
		if (a < b && a < high && b > from && a < *start) {
			*start = a > from ? a : from;
			*end = b < high ? b : high;
		}
	}
	return *start < high;
}

/* What of a mapping is the program's; and locks it. */
static size_t theirs(uintptr_t low, uintptr_t high, int flags, bool locks)
{
	uintptr_t from = low, start, end = 0;
	size_t bytes = 0;

	while (from < high) {
		bool more = next_range(from, low, high, &start, &end);

		bytes += start - from;
		if (locks && start > from)
			syscall(SYS_mlock2, from, start - from, flags & MCL_ONFAULT ? MLOCK_ONFAULT : 0);
		from = more ? end : high;
	}
	return bytes;
}

static const char *hex(const char *at, uintptr_t *ret)
{
	*ret = 0;
	for (;; at++) {
		unsigned digit = *at >= '0' && *at <= '9'   ? (unsigned)(*at - '0')
				 : *at >= 'a' && *at <= 'f' ? (unsigned)(*at - 'a') + 10
							    : 16;

		if (digit > 15)
			return at;
		*ret = *ret << 4 | digit;
	}
}

/* Goes through /proc/self/maps, of which it needs the first two numbers of each line. */
static size_t each_mapping(int flags, bool locks)
{
	char text[4096];
	size_t bytes = 0, kept = 0;
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return SIZE_MAX;
	while ((n = read(fd, text + kept, sizeof(text) - kept - 1)) > 0) {
		char *line = text, *end;

		kept += (size_t)n;
		text[kept] = 0;
		for (; (end = strchr(line, '\n')); line = end + 1) {
			uintptr_t low, high;
			const char *at = hex(line, &low);

			*end = 0;
			hex(at + (*at == '-'), &high);
			if (*at == '-' && high > low && !strstr(line, "[vsyscall]"))
				bytes += theirs(low, high, flags, locks);
		}
		kept -= (size_t)(line - text);
		memmove(text, line, kept);
		if (kept == sizeof(text) - 1)
			kept = 0; /* a longer path than there can be */
	}
	close(fd);
	return bytes;
}

PRELOAD_API int mlockall(int flags)
{
	static void *real PRELOAD_NEAR;
	int (*call)(int) = PRELOAD_REAL(real, "mlockall");
	struct rlimit limit;
	int r = call(flags), saved = errno;

	if (r < 0 && saved == ENOMEM && flags & MCL_CURRENT && getrlimit(RLIMIT_MEMLOCK, &limit) == 0 &&
	    each_mapping(flags, false) <= limit.rlim_cur) {
		each_mapping(flags, true);
		r = flags & MCL_FUTURE ? call(flags & ~MCL_CURRENT) : 0;
		saved = errno;
	}
	if (r == 0)
		__atomic_store_n(&locks_later, (flags & MCL_FUTURE) != 0, __ATOMIC_RELAXED);
	errno = saved;
	return r;
}

PRELOAD_API int munlockall(void)
{
	static void *real PRELOAD_NEAR;
	int (*call)(void) = PRELOAD_REAL(real, "munlockall");

	__atomic_store_n(&locks_later, 0, __ATOMIC_RELAXED);
	return call();
}
