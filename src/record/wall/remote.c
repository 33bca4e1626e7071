/* SPDX-License-Identifier: Apache-2.0 */
#include "record/wall/remote.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/place.h"
#include "record/tables/tables.h"
#include "record/thread/thread.h"
#include "unwind/outside.h"
#include "unwind/unwind.h"

#define COPY_FIRST 8192
#define COPY_MOST (256u << 10) /* of a stack */
#define LOOKS 2                /* at a thread that ran meanwhile */

static uint8_t copied[COPY_MOST] LARGE_TABLE;
static uint64_t frames_found[WEFT__UNWIND_DEPTH_MAX];

/* A file of /proc/self/task/TID, as text. Answers its length or a negative error. */
static ssize_t task_read(uint32_t tid, const char *name, char *text, size_t bytes)
{
	char path[64];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/task/%u/%s", tid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = read(fd, text, bytes - 1);
	if (n < 0)
		n = -errno;
	close(fd);
	text[n > 0 ? n : 0] = 0;
	return n;
}

int weft__remote_probe(void)
{
	char text[256];
	ssize_t n = task_read((uint32_t)syscall(SYS_gettid), "syscall", text, sizeof(text));

	return n < 0 ? (int)n : n == 0 ? -ENOSYS : 0;
}

uint64_t weft__remote_queue(uint32_t tid)
{
	char text[96], *at;

	if (task_read(tid, "schedstat", text, sizeof(text)) <= 0)
		return 0;
	strtoull(text, &at, 10);
	return strtoull(at, NULL, 10);
}

int weft__remote_named(uint32_t tid, const char *prefix)
{
	char text[32];

	return task_read(tid, "comm", text, sizeof(text)) > 0 && !strncmp(text, prefix, strlen(prefix));
}

/* Memory of ours that may not be there, as much of it as is. Where the first way is forbidden, as some sandboxes do,
 * by the second. */
static size_t memory_read(uint64_t addr, void *to, size_t n)
{
	struct iovec local = {to, n}, remote = {(void *)(uintptr_t)addr, n};
	ssize_t got = process_vm_readv(getpid(), &local, 1, &remote, 1, 0);
	int fd;

	if (got >= 0 || errno == EFAULT)
		return got > 0 ? (size_t)got : 0;
	fd = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	got = pread(fd, to, n, (off_t)addr);
	close(fd);
	return got > 0 ? (size_t)got : 0;
}

static int remote_code_at(uint64_t addr, void *to, size_t n)
{
	return memory_read(addr, to, n) == n;
}

/* Where a thread waits. 1; 0: it runs; negative: it is not known. */
static int place_read(uint32_t tid, uint32_t *call, uint64_t *sp, uint64_t *pc)
{
	char text[256], *at;
	ssize_t n = task_read(tid, "syscall", text, sizeof(text));
	long number;

	if (n <= 0)
		return n < 0 ? (int)n : -ENOENT;
	number = strtol(text, &at, 10);
	if (at == text)
		return 0;
	*call = number >= 0 ? (uint32_t)number + 1 : 0;
	for (int i = 0; i < (number >= 0 ? 6 : 0); i++)
		strtoull(at, &at, 16);
	*sp = strtoull(at, &at, 16);
	*pc = strtoull(at, &at, 16);
	return *sp != 0; /* a first thread that has ended before the others has none */
}

/* Only that it waits. */
static int state_read(uint32_t tid)
{
	char text[512], *at;

	if (task_read(tid, "stat", text, sizeof(text)) <= 0)
		return -ENOENT;
	at = strrchr(text, ')');
	return at && at[1] == ' ' && strchr("SDT", at[2]) && at[2];
}

/* From the stack as far as it was copied. More is copied when it was not enough, as long as the thread has not run. */
static void unwind(uint32_t tid, uint64_t sp, uint64_t pc, struct weft__remote *ret)
{
	struct weft__outside in = {.sp = sp, .pc = pc, .bytes = copied, .read = remote_code_at};
	uint64_t cpu_ns = ret->cpu_ns;
	uint32_t visit;

	ret->n = 0;
	for (size_t want = COPY_FIRST;; want *= 4) {
		const struct weft__modules *modules;

		if (want > COPY_MOST)
			want = COPY_MOST;
		in.n += memory_read(sp + in.n, copied + in.n, want - in.n);
		if (weft__thread_cpu(tid, &cpu_ns) < 0 || cpu_ns != ret->cpu_ns)
			break;
		modules = weft__modules_enter(&visit);
		ret->n = (uint32_t)weft__unwind_outside(
			modules, &in, frames_found,
			weft__unwinding.depth ? weft__unwinding.depth : WEFT__UNWIND_DEPTH_MAX, &ret->flags);
		weft__modules_leave(visit);
		ret->pending = in.pending;
		if (!(ret->flags & WEFT__UNWIND_LOST) || in.n < want)
			return;
		if (want == COPY_MOST) {
			/* It went all the way up through what was copied. */
			if (in.last_sp - sp > COPY_MOST - COPY_FIRST)
				ret->flags = (ret->flags & ~(uint32_t)WEFT__UNWIND_LOST) | WEFT__UNWIND_CUT;
			return;
		}
	}
	/* It ran. What was found before that, from less of the stack, is as good as it gets, if there is any. */
}

static void look(uint32_t tid, int brief, struct weft__remote *ret)
{
	uint64_t sp = 0, pc = 0;
	int waits;

	if (weft__thread_cpu(tid, &ret->cpu_ns) < 0)
		return;
	waits = brief ? state_read(tid) : place_read(tid, &ret->call, &sp, &pc);
	if (waits < 0)
		return;
	ret->state = waits ? REMOTE_WAITS : REMOTE_RUNNING;
	if (waits && !brief)
		unwind(tid, sp, pc, ret);
}

void weft__remote_look(uint32_t tid, int brief, struct weft__remote *ret)
{
	for (int i = 0; i < LOOKS; i++) {
		*ret = (struct weft__remote){.frames = frames_found};
		look(tid, brief, ret);
		if (ret->state != REMOTE_WAITS || brief || ret->n)
			return;
	}
	ret->state = REMOTE_RUNNING;
}
