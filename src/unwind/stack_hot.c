/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <linux/ioctl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/atomic.h"
#include "unwind/stack.h"

struct weft__stack_learned weft__stack_learned;

/* What Linux 6.11 and later answer of the mapping that an address is in: as include/uapi/linux/fs.h has it. */
struct map_query {
	uint64_t size, flags, addr;
	uint64_t begin, end, vma_flags, page_size, offset, inode;
	uint32_t major, minor, name_size, build_id_size;
	uint64_t name, build_id;
};
#define MAP_QUERY _IOWR('f', 17, struct map_query)
#define MAP_READABLE 1u

/* One line of the list, taken byte by byte: begin-end perms offset device inode name */
struct map_line {
	uint64_t begin, end;
	unsigned field;    /* 0 begin, 1 end, 2 perms, 3 the rest */
	unsigned readable; /* r is the first of perms */
	unsigned named;    /* how many bytes of "[stack]" have been seen in a row */
};

static void line_take(struct map_line *line, char c)
{
	static const char name[] = "[stack]";
	unsigned digit = c >= '0' && c <= '9'   ? (unsigned)(c - '0')
			 : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10
						: 16;

	if (line->field < 2 && digit < 16) {
		uint64_t *to = line->field ? &line->end : &line->begin;

		*to = *to << 4 | digit;
	} else if (line->field < 2) {
		line->field++;
	} else if (line->field == 2) {
		line->readable = c == 'r';
		line->field++;
	} else if (line->named < sizeof(name) - 1) {
		line->named = c == name[line->named] ? line->named + 1 : c == name[0];
	}
}

/* The mapping of an address without the list, which is long when there are thousands of threads: reading it then
 * takes milliseconds. 0: the kernel does not answer that. */
static int map_ask(int fd, uint64_t sp, struct map_line *ret)
{
	char name[16] = "";
	struct map_query query = {
		.size = sizeof(query), .addr = sp, .name_size = sizeof(name), .name = (uint64_t)(uintptr_t)name};

	/* A name that is longer is not the one that is looked for, and an error. */
	if (syscall(SYS_ioctl, fd, MAP_QUERY, &query) < 0) {
		query = (struct map_query){.size = sizeof(query), .addr = sp};
		if (errno != ENAMETOOLONG || syscall(SYS_ioctl, fd, MAP_QUERY, &query) < 0)
			return 0;
		name[0] = 0;
	}
	*ret = (struct map_line){.begin = query.begin,
				 .end = query.end,
				 .readable = (query.vma_flags & MAP_READABLE) != 0,
				 .named = memcmp(name, "[stack]", 8) == 0 ? 7 : 0};
	return 1;
}

/* 1 when this is the mapping. `thread` is where the thread's descriptor lies, if that is on its stack. */
static int line_done(const struct map_line *line, uint64_t sp, uint64_t thread, struct weft__stack_bounds *ret)
{
	if (sp < line->begin || sp >= line->end || !line->readable)
		return 0;
	ret->low = line->begin;
	ret->high = line->end;
	ret->sure = line->named == 7;
	if (!ret->sure && thread > sp && thread < line->end) {
		ret->high = thread & ~(uint64_t)7;
		ret->sure = 1;
	}
	return 1;
}

/* The first thread's descriptor is in a mapping of the loader's, which one of somebody's coroutines may touch. */
static uint64_t descriptor(void)
{
	return syscall(SYS_gettid) == syscall(SYS_getpid) ? 0 : (uint64_t)(uintptr_t)__builtin_thread_pointer();
}

/* Of a thread of the thread library: what is on its stack is below its descriptor. */
__attribute__((no_sanitize("address"), no_sanitize("thread"))) static int block_has(uint64_t thread, uint64_t sp,
										    struct weft__stack_bounds *ret)
{
	int32_t at = load_relaxed(&weft__stack_learned.block_at);
	const volatile uint64_t *block = (const volatile uint64_t *)(uintptr_t)(thread + (uint64_t)(int64_t)at);
	uint64_t begin, length, guard;

	if (!at)
		return 0;
	begin = block[0];
	length = block[1];
	guard = block[2];
	if (thread - begin >= length || guard >= length || sp < begin + guard || sp >= thread)
		return 0;
	*ret = (struct weft__stack_bounds){begin + guard, thread & ~(uint64_t)7, 1};
	return 1;
}

/* The first thread's grows: what is below the stack pointer may not be there yet. */
static int main_has(uint64_t sp, struct weft__stack_bounds *ret)
{
	uint64_t high = load_acquire(&weft__stack_learned.main_high);

	if (sp >= high || high - sp >= load_relaxed(&weft__stack_learned.main_most))
		return 0;
	*ret = (struct weft__stack_bounds){sp & ~UINT64_C(4095), high, 1};
	return 1;
}

/* `stack_pointer` 0: the first thread's, by its name. */
static int maps_find(uint64_t stack_pointer, uint64_t thread, struct weft__stack_bounds *ret)
{
	struct map_line line = {0};
	char buf[256];
	int saved = errno, found = 0;
	long n, fd = syscall(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		n = -errno;
	if (fd >= 0 && stack_pointer && map_ask((int)fd, stack_pointer, &line))
		found = line_done(&line, stack_pointer, thread, ret);
	line = (struct map_line){0};
	while (fd >= 0 && !found && (n = syscall(SYS_read, fd, buf, sizeof(buf))) > 0) {
		for (long i = 0; i < n && !found; i++) {
			if (buf[i] != '\n') {
				line_take(&line, buf[i]);
				continue;
			}
			found = line_done(&line,
					  stack_pointer     ? stack_pointer
					  : line.named == 7 ? line.begin
							    : 0,
					  thread, ret);
			line = (struct map_line){0};
		}
	}
	if (fd >= 0)
		syscall(SYS_close, fd);
	errno = saved;
	if (found)
		return 0;
	return fd < 0 ? (int)n : -ENOENT;
}

int weft__stack_bounds_find(uint64_t stack_pointer, struct weft__stack_bounds *ret)
{
	uint64_t thread = descriptor();

	if (thread ? block_has(thread, stack_pointer, ret) : main_has(stack_pointer, ret))
		return 0;
	return maps_find(stack_pointer, thread, ret);
}

int weft__stack_bounds_own(struct weft__stack_bounds *ret)
{
	uint64_t thread = descriptor();

	if (thread && block_has(thread, thread - 8, ret))
		return 0;
	return maps_find(thread ? thread - 8 : 0, thread, ret);
}

int weft__stack_map(uint64_t address, struct weft__stack_bounds *ret)
{
	return maps_find(address, 0, ret);
}
