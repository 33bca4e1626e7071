/* SPDX-License-Identifier: Apache-2.0 */
/* Users and groups. The C library gives all threads the same, and ends the process when one of them may not have
 * what another may. A program that made no thread may well have capabilities that weft's threads have not (prctl and
 * capset are about one thread), as setpriv does. So it changes its own only, as the C library does where there is
 * one thread; weft's threads come after (base/private_fds.h). */
#include <grp.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include "base/private_fds.h"
#include "preload.h"

#define GATHER_MS 1000

static bool alone(void)
{
	return PRELOAD_BARE && __atomic_load_n(&weft__preload_on, __ATOMIC_ACQUIRE) &&
	       __atomic_load_n(&weft__preload_alone, __ATOMIC_RELAXED);
}

/* The program has threads by now: all must be of one mind before the C library asks them. */
static void gather(void)
{
	struct timespec nap = {0, 1000000};
	int i;

	for (i = 0; __atomic_load_n(&weft__ids_strayed, __ATOMIC_SEQ_CST) && i < GATHER_MS; i++)
		preload_bare(SYS_nanosleep, (long)(uintptr_t)&nap, 0, 0, 0, 0, 0);
}

static int change(long number, long a, long b, long c)
{
	int r = (int)preload_bare(number, a, b, c, 0, 0, 0);

	if (r == 0)
		__atomic_store_n(&weft__ids_strayed, 1, __ATOMIC_SEQ_CST);
	return r;
}

#define IDS(name, parameters, arguments, number, a, b, c)                                                              \
	PRELOAD_API int name parameters                                                                                \
	{                                                                                                              \
		static void *real PRELOAD_NEAR;                                                                        \
		int(*call) parameters;                                                                                 \
                                                                                                                       \
		weft__preload_late_now();                                                                              \
		if (alone())                                                                                           \
			return change(number, (long)(a), (long)(b), (long)(c));                                        \
		gather();                                                                                              \
		call = PRELOAD_REAL(real, #name);                                                                      \
		return call arguments;                                                                                 \
	}

IDS(setuid, (uid_t uid), (uid), SYS_setuid, uid, 0, 0)
IDS(setgid, (gid_t gid), (gid), SYS_setgid, gid, 0, 0)
IDS(seteuid, (uid_t uid), (uid), SYS_setresuid, -1, uid, -1)
IDS(setegid, (gid_t gid), (gid), SYS_setresgid, -1, gid, -1)
IDS(setreuid, (uid_t r, uid_t e), (r, e), SYS_setreuid, r, e, 0)
IDS(setregid, (gid_t r, gid_t e), (r, e), SYS_setregid, r, e, 0)
IDS(setresuid, (uid_t r, uid_t e, uid_t s), (r, e, s), SYS_setresuid, r, e, s)
IDS(setresgid, (gid_t r, gid_t e, gid_t s), (r, e, s), SYS_setresgid, r, e, s)
IDS(setgroups, (size_t n, const gid_t *list), (n, list), SYS_setgroups, n, (uintptr_t)list, 0)

/* A user namespace of its own is for a process of one thread; so weft has none for that moment. */
static bool without_ours(int (*call)(int, int), int a, int b, int *ret)
{
	struct weft_recorder *rec = __atomic_load_n(&weft__preload_recorder, __ATOMIC_ACQUIRE);
	struct timespec nap = {0, 1000000};
	int i, error;

	if (errno != EINVAL || !alone() || !rec)
		return false;
	weft__preload_thread.quiet++;
	weft_recorder_stop(rec, NULL);
	/* A thread that was joined is not yet out of the kernel's count. */
	for (i = 0; (*ret = call(a, b)) < 0 && errno == EINVAL && i < GATHER_MS / 10; i++)
		preload_bare(SYS_nanosleep, (long)(uintptr_t)&nap, 0, 0, 0, 0, 0);
	error = errno;
	weft_recorder_start(rec, NULL);
	weft__preload_thread.quiet--;
	errno = error;
	return true;
}

static int call_unshare(int flags, int none)
{
	(void)none;
	return (int)preload_bare(SYS_unshare, flags, 0, 0, 0, 0, 0);
}

static int call_setns(int fd, int type)
{
	return (int)preload_bare(SYS_setns, fd, type, 0, 0, 0, 0);
}

/* The directory of the recording is not in the new root. */
PRELOAD_API int chroot(const char *path)
{
	static void *real PRELOAD_NEAR;
	int (*call)(const char *) = PRELOAD_REAL(real, "chroot");

	weft__preload_late_now();
	return call(path);
}

PRELOAD_API int unshare(int flags)
{
	static void *real PRELOAD_NEAR;
	int (*call)(int) = PRELOAD_REAL(real, "unshare");
	int r = call(flags);

	if (r < 0 && (flags & CLONE_NEWUSER))
		without_ours(call_unshare, flags, 0, &r);
	return r;
}

PRELOAD_API int setns(int fd, int type)
{
	static void *real PRELOAD_NEAR;
	int (*call)(int, int) = PRELOAD_REAL(real, "setns");
	int r = call(fd, type);

	if (r < 0)
		without_ours(call_setns, fd, type, &r);
	return r;
}
