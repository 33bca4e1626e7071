/* SPDX-License-Identifier: Apache-2.0 */
/* Where the program is: whether a thread can be made there. It takes memory and locks of the C library, so neither
 * the C library nor a signal handler, which may have interrupted it anywhere, is a place for that. */
#include <gnu/libc-version.h>
#include <link.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "preload.h"
#include "unwind/stack.h"

#define SCAN_BYTES (UINT64_C(1) << 20)

struct range {
	uintptr_t low, high;
};

static struct range
	closed[4] PRELOAD_NEAR; /* code in which a lock may be held: the C library, the loader, the vDSO, ours */
static uintptr_t restorer PRELOAD_NEAR; /* what handlers return to; 0: into the vDSO */

extern void *__libc_stack_end;

bool weft__preload_is_closed(uintptr_t pc)
{
	for (size_t i = 0; i < sizeof(closed) / sizeof(closed[0]); i++)
		if (pc >= closed[i].low && pc < closed[i].high)
			return true;
	return false;
}

/* HOT. Whether a word on the stack is what a signal handler returns to. */
__attribute__((no_sanitize("address", "thread"))) static bool has_handler(uintptr_t sp, uintptr_t high)
{
	const struct range *vdso = &closed[2];

	for (const uintptr_t *at = (const uintptr_t *)((sp + 7) & ~(uintptr_t)7); (uintptr_t)(at + 1) <= high; at++)
		if (restorer ? *at == restorer : *at >= vdso->low && *at < vdso->high)
			return true;
	return false;
}

bool weft__preload_is_calm(uintptr_t sp)
{
	struct weft__stack_bounds bounds = {.high = (uintptr_t)__libc_stack_end};
	stack_t alternate;

	if (sigaltstack(NULL, &alternate) < 0 || alternate.ss_flags & SS_ONSTACK)
		return false;
	if ((sp > bounds.high || bounds.high - sp > SCAN_BYTES) && weft__stack_bounds_find(sp, &bounds) < 0)
		return false;
	return bounds.high - sp <= SCAN_BYTES && !has_handler(sp, bounds.high);
}

#if defined(__x86_64__)
struct kernel_sigaction {
	void *handler;
	unsigned long flags;
	void *restorer;
	uint64_t mask;
};

void weft__preload_restorer_find(int signal)
{
	struct kernel_sigaction now = {0};

	if (signal && syscall(SYS_rt_sigaction, signal, NULL, &now, sizeof(now.mask)) == 0)
		restorer = (uintptr_t)now.restorer;
}
#else
void weft__preload_restorer_find(int signal)
{
	(void)signal;
}
#endif

static int find_range(struct dl_phdr_info *info, size_t bytes, void *data)
{
	const uintptr_t known[4] = {(uintptr_t)&gnu_get_libc_version, (uintptr_t)getauxval(AT_BASE),
				    (uintptr_t)getauxval(AT_SYSINFO_EHDR), (uintptr_t)&weft__preload_late_call};
	struct range all = {UINTPTR_MAX, 0};

	(void)bytes;
	(void)data;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &info->dlpi_phdr[i];
		uintptr_t low = info->dlpi_addr + part->p_vaddr;

		if (part->p_type != PT_LOAD)
			continue;
		all.low = low < all.low ? low : all.low;
		all.high = low + part->p_memsz > all.high ? low + part->p_memsz : all.high;
	}
	for (size_t i = 0; i < 4; i++)
		if (known[i] >= all.low && known[i] < all.high)
			closed[i] = all;
	return 0;
}

void weft__preload_code_init(void)
{
	dl_iterate_phdr(find_range, NULL);
}

bool weft__preload_in_libc(const void *at)
{
	return (uintptr_t)at >= closed[0].low && (uintptr_t)at < closed[0].high;
}
