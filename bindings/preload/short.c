/* SPDX-License-Identifier: Apache-2.0 */
/* Processes that end before weft started in them. A child of fork that ends at once lives for 80 us, so what it does
 * here is in few pages: its code side by side, no call of the C library, nothing written but the shared page and the
 * thread's own memory, which fork has copied already. */
#include "base/short.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/place.h"
#include "preload.h"

#define AGAIN_NS 10000000 /* until the timer is due again */
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)
#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

static struct weft__short_page *page PRELOAD_NEAR; /* NULL: lines are written */
static struct weft__short_name *own_name PRELOAD_NEAR;
static bool page_tried PRELOAD_NEAR;
static uint32_t has_left PRELOAD_NEAR = 1; /* this process is accounted for, or never was in the count */

FORK_CODE static uint64_t small_clock(clockid_t clock)
{
	struct timespec ts = {0, 0};

	SMALL_CALL(SYS_clock_gettime, clock, &ts, 0, 0);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

FORK_CODE int weft__preload_small_pid(void)
{
	return (int)SMALL_CALL(SYS_getpid, 0, 0, 0, 0);
}

FORK_CODE int weft__preload_timer_new(int signal, int tid, uint64_t after_ns)
{
	struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = signal};
	struct itimerspec spec = {.it_interval = {0, AGAIN_NS}};
	int timer = -1;

	event.sigev_notify_thread_id = tid;
	spec.it_value.tv_sec = (time_t)(after_ns / 1000000000u);
	spec.it_value.tv_nsec = (long)(after_ns % 1000000000u | 1); /* 0 would be never */
	if (SMALL_CALL(SYS_timer_create, CLOCK_THREAD_CPUTIME_ID, &event, &timer, 0) < 0)
		return -1;
	if (SMALL_CALL(SYS_timer_settime, timer, 0, &spec, NULL) == 0)
		return timer;
	SMALL_CALL(SYS_timer_delete, timer, 0, 0, 0);
	return -1;
}

FORK_CODE void weft__preload_child_begin(int signal, uint64_t after_ns)
{
	struct preload_thread *t = &weft__preload_thread;

	t->ticking = 0;
	t->fork_at_ns = t->forks_ns = 0;
	t->child.pid = weft__preload_small_pid();
	t->child.born_ns = small_clock(CLOCK_MONOTONIC);
	t->child.timer = signal ? weft__preload_timer_new(signal, t->child.pid, after_ns) : -1;
	if (page)
		__atomic_fetch_add(&page->born, 1, __ATOMIC_RELAXED);
}

FORK_CODE void weft__preload_counts_left(int n)
{
	if (page)
		__atomic_fetch_add(&page->left, (uint64_t)(int64_t)n, __ATOMIC_RELAXED);
}

void weft__preload_counts_born(void)
{
	if (page)
		__atomic_fetch_add(&page->born, 1, __ATOMIC_RELAXED);
	weft__preload_counts_settle();
}

void weft__preload_counts_settle(void)
{
	__atomic_store_n(&has_left, 0, __ATOMIC_RELAXED);
}

bool weft__preload_counts_leave(void)
{
	if (__atomic_exchange_n(&has_left, 1, __ATOMIC_RELAXED))
		return false;
	weft__preload_counts_left(1);
	return true;
}

FORK_CODE bool weft__preload_counts_end(clockid_t cpu_clock, uint64_t born_ns)
{
	struct weft__short_name *at = own_name;
	uint64_t cpu_ns, lived_ns;

	if (!at || __atomic_load_n(&page->closed, __ATOMIC_RELAXED))
		return false;
	cpu_ns = small_clock(cpu_clock);
	lived_ns = small_clock(CLOCK_MONOTONIC) - born_ns;
	__atomic_fetch_add(&at->cpu_ns, cpu_ns, __ATOMIC_RELAXED);
	__atomic_fetch_add(&at->lived_ns, lived_ns, __ATOMIC_RELAXED);
	__atomic_fetch_add(&at->n, 1, __ATOMIC_RELEASE);
	return true;
}

static char safe(char c)
{
	return (char)(c > ' ' && c < 127 ? c : '_');
}

/* The place of this program; NULL: there is none left. */
static struct weft__short_name *take_name(struct weft__short_page *in)
{
	char name[SHORT_NAME_BYTES] = "";
	size_t i;

	for (i = 0; i + 1 < sizeof(name) && program_invocation_short_name[i]; i++)
		name[i] = safe(program_invocation_short_name[i]);
	if (!name[0])
		return NULL;
	for (i = 0; i < SHORT_NAMES; i++) {
		struct weft__short_name *at = &in->names[i];
		uint32_t none = 0;

		if (__atomic_compare_exchange_n(&at->state, &none, 1, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
			memcpy(at->name, name, sizeof(name));
			__atomic_store_n(&at->state, 2, __ATOMIC_RELEASE);
			return at;
		}
		if (none == 2 && memcmp(at->name, name, sizeof(name)) == 0)
			return at;
	}
	return NULL;
}

/* Whether it is what weft run made: its number may be another file's by now. */
static bool is_page(int fd, unsigned long long inode)
{
	struct stat st;

	return SMALL_CALL(SYS_fstat, fd, &st, 0, 0) == 0 && st.st_ino == inode && st.st_size == (off_t)sizeof(*page) &&
	       SMALL_CALL(SYS_fcntl, fd, F_GET_SEALS, 0, 0) == SEALS;
}

void weft__preload_counts_open(void)
{
	const char *text = page_tried ? NULL : getenv(SHORT_ENV);
	char path[64] = "";
	unsigned long long inode = 0;
	int saved = errno;
	size_t n = 0;
	long at;
	long fd;

	if (page_tried)
		return;
	page_tried = true;
	for (; text && *text && *text != ' ' && n + 1 < sizeof(path); text++)
		path[n++] = *text;
	if (!text || *text++ != ' ')
		return;
	for (; *text >= '0' && *text <= '9'; text++)
		inode = inode * 10 + (unsigned)(*text - '0');
	fd = SMALL_CALL(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC | O_NONBLOCK, 0);
	if (fd >= 0 && is_page((int)fd, inode)) {
		at = SMALL_CALL6(SYS_mmap, NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		page = at != -1 ? (struct weft__short_page *)at : NULL; /* NOLINT(performance-no-int-to-ptr) */
		if (page && page->mark != SHORT_MARK)
			page = NULL;
		if (page)
			own_name = take_name(page);
	}
	if (fd >= 0)
		SMALL_CALL(SYS_close, fd, 0, 0, 0);
	errno = saved;
}

#define DIGITS 24

static char *put_number(char *to, uint64_t number)
{
	char digits[DIGITS];
	size_t at = sizeof(digits);

	do
		digits[--at] = (char)('0' + number % 10);
	while (number /= 10);
	to = mempcpy(to, digits + at, sizeof(digits) - at);
	*to++ = ' ';
	return to;
}

/* "PID CPU_NS LIVED_NS NAME": written in one piece, so that lines of many processes do not mix. */
void weft__preload_short_line(const char *dir, uint64_t born_ns)
{
	char path[PATH_MAX + 32], line[4 * DIGITS + 64], *to = line;
	size_t n = strlen(dir), name = strnlen(program_invocation_short_name, 48);
	struct stat st;
	long fd;

	memcpy(path, dir, n);
	memcpy(path + n, "/short-processes.txt", sizeof("/short-processes.txt"));
	to = put_number(to, (uint64_t)weft__preload_small_pid());
	to = put_number(to, small_clock(CLOCK_PROCESS_CPUTIME_ID));
	to = put_number(to, small_clock(CLOCK_MONOTONIC) - born_ns);
	for (size_t i = 0; i < name; i++)
		*to++ = safe(program_invocation_short_name[i]);
	*to++ = '\n';
	fd = SMALL_CALL(SYS_openat, -1, path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0);
	if (fd < 0)
		return;
	/* Where others may write, it may be theirs, or another name of any file. */
	if (fstat((int)fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_nlink == 1 && st.st_uid == geteuid())
		(void)!SMALL_CALL(SYS_write, fd, line, to - line, 0);
	SMALL_CALL(SYS_close, fd, 0, 0, 0);
}
