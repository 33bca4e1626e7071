/* SPDX-License-Identifier: Apache-2.0 */
/* A thread's CPU time and its wait for a CPU, read by the thread itself beside a park or unpark. HOT.
 *
 * Both are system calls: 0.6 and 1 us in a loop, 2.3 and 6.3 us in a server whose caches are full of other things.
 * Hence at most one reading in 10 ms, and in 20 ms while parks are only counted, since then weft is at its budget. The
 * file is opened once per thread and stays open until the thread ends. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/atomic.h"
#include "record/event/account.h"
#include "record/ring/ring.h"

#define SCHED_COUNTED 2 /* times as rare while parks are only counted */

static char *put_decimal(char *to, uint32_t v)
{
	char digits[10];
	int n = 0;

	do
		digits[n++] = (char)('0' + v % 10);
	while (v /= 10);
	while (n)
		*to++ = digits[--n];
	return to;
}

static void sched_open(struct ring_page *ring)
{
	char path[64] = "/proc/self/task/";
	char *end = put_decimal(path + strlen(path), ring->owner);
	long fd;

	memcpy(end, "/schedstat", sizeof("/schedstat"));
	fd = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
	store_relaxed(&ring->sched_fd, fd < 0 ? -1 : (int32_t)fd + 1);
}

/* "CPU-ns WAIT-ns SLICES": the second number. 0: there is none, with errno. */
static int read_wait(int fd, uint64_t *ret)
{
	char text[64];
	long n = syscall(SYS_pread64, fd, text, sizeof(text), 0);
	uint64_t wait = 0;
	long i = 0;

	while (i < n && text[i] != ' ')
		i++;
	if (i >= n)
		return 0;
	for (i++; i < n && text[i] >= '0' && text[i] <= '9'; i++)
		wait = wait * 10 + (uint64_t)(text[i] - '0');
	*ret = wait;
	return 1;
}

/* A thread that died without a word left its file, and the collector could not close it (base/private_fds.h). */
static int sched_read(struct ring_page *ring, uint64_t *ret)
{
	int fd = load_relaxed(&ring->sched_fd) - 1; /* close may take it away: nobody sees what is read then */

	errno = 0;
	if (fd < 0 || read_wait(fd, ret))
		return fd >= 0;
	if (errno == ESRCH) {
		weft__own_close_proc(fd);
		sched_open(ring);
	}
	return 0;
}

int weft__sched_ready(struct ring_page *ring, enum weft__sched_use use, uint64_t *ret)
{
	int fd = load_relaxed(&ring->sched_fd), known;

	if (use == WEFT__SCHED_OPEN && fd <= 0)
		return 0;
	if (!fd)
		sched_open(ring);
	known = sched_read(ring, ret);
	if (!fd && use == WEFT__SCHED_ONCE)
		weft__own_close_proc(__atomic_exchange_n(&ring->sched_fd, 0, __ATOMIC_RELAXED) - 1);
	return known;
}

static int sched_times(struct ring_page *ring, uint64_t tick, uint64_t *cpu_ns, uint64_t *wait_ns)
{
	struct timespec cpu;

	if (load_relaxed(&weft_gate.on) & WEFT_GATE_RSEQ)
		return weft__account_read(ring, tick, cpu_ns, wait_ns);
	if (!sched_read(ring, wait_ns) || clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu) < 0)
		return 0;
	*cpu_ns = (uint64_t)cpu.tv_sec * 1000000000u + (uint64_t)cpu.tv_nsec;
	return 1;
}

static uint64_t sched_pace(void)
{
	return load_relaxed(&weft_gate.sched_ticks) *
	       (load_relaxed(&weft_gate.on) & WEFT_GATE_PARKS ? SCHED_COUNTED : 1);
}

static void sched_emit(struct ring_page *ring, uint64_t tick, uint64_t cpu_ns, uint64_t wait_ns)
{
	struct weft_slot wait = {wait_ns, 0};

	weft__ring_emit(ring, WEFT_KIND_SCHED, cpu_ns, tick, &wait);
}

void weft__sched_was_read(struct ring_page *ring, uint64_t tick, uint64_t cpu_ns, uint64_t wait_ns)
{
	uint64_t pace = sched_pace();

	if ((int64_t)(tick + pace / 2 - ring->hot.sched_due) < 0)
		return;
	ring->hot.sched_due = tick + pace;
	sched_emit(ring, tick, cpu_ns, wait_ns);
}

void weft_slow_sched(uint64_t tick)
{
	struct ring_page *ring = weft__ring_mine();
	uint64_t cpu_ns, wait_ns;
	int saved = errno;

	if (!ring)
		return;
	ring->hot.sched_due = tick + sched_pace();
	if (!load_relaxed(&ring->sched_fd))
		sched_open(ring);
	if (sched_times(ring, tick, &cpu_ns, &wait_ns))
		sched_emit(ring, tick, cpu_ns, wait_ns);
	errno = saved;
}
