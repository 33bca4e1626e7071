/* SPDX-License-Identifier: Apache-2.0 */
/* What the choice of an engine depends on. CALLER. */
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "record/sample/state.h"

/* The kernel's tick, which is all that CPU timers are looked at. */
uint32_t weft__machine_tick_hz(void)
{
	struct timespec res;

	if (clock_getres(CLOCK_MONOTONIC_COARSE, &res) < 0 || res.tv_sec || !res.tv_nsec)
		return 100;
	return (uint32_t)((1000000000 + res.tv_nsec / 2) / res.tv_nsec);
}

int weft__machine_kernel(unsigned major, unsigned minor)
{
	struct utsname uts;
	unsigned a = 0, b = 0;

	return uname(&uts) == 0 && sscanf(uts.release, "%u.%u", &a, &b) == 2 &&
	       (a > major || (a == major && b >= minor));
}

int weft__machine_rdtscp(void)
{
#if defined(__x86_64__)
	unsigned a, b, c, d;

	return __get_cpuid(0x80000001, &a, &b, &c, &d) && (d & (1u << 27));
#else
	return 0;
#endif
}

#define ARCH_GET_XCOMP_PERM 0x1022
#define XCOMP_TILES 18 /* AMX */

unsigned long weft__machine_unused_frame(void)
{
#if defined(__x86_64__) && defined(SYS_arch_prctl)
	unsigned long allowed = 0;
	unsigned a = 0, b, c, d;

	if (syscall(SYS_arch_prctl, ARCH_GET_XCOMP_PERM, &allowed) < 0 || allowed >> XCOMP_TILES & 1 ||
	    !__get_cpuid_count(0xd, XCOMP_TILES, &a, &b, &c, &d))
		return 0;
	return a;
#else
	return 0;
#endif
}
