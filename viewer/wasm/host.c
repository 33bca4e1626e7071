/* SPDX-License-Identifier: Apache-2.0 */
/* What the sources expect of a machine, where there is none: memory, sorting, names of errors and signals. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/heap.h"
#include "page.h"
#include "symbol/data.h"
#include "symbol/demangle.h"
#include "symbol/symbol.h"

void *weft__heap_resize(void *ptr, size_t bytes)
{
	return realloc(ptr, bytes ? bytes : 1);
}

void weft__heap_release(void *ptr)
{
	free(ptr);
}

int weft__heap_is_zero(const void *ptr)
{
	(void)ptr;
	return 0;
}

#define PAGE_BYTES 65536u
#define GROW_LEAST (UINT32_C(8) << 20)

/* malloc asks for a page at a time, and each time that memory grows the browser makes its arrays anew: so it grows by
 * an eighth. */
void *sbrk(intptr_t bytes)
{
	static uintptr_t at, end;
	uintptr_t old;

	if (!at)
		at = end = (uintptr_t)__builtin_wasm_memory_size(0) * PAGE_BYTES;
	old = at;
	if (bytes < 0)
		return (void *)-1;
	if ((uintptr_t)bytes > end - at) {
		uintptr_t need = (uintptr_t)bytes - (end - at), more = end / 8 > GROW_LEAST ? end / 8 : GROW_LEAST;

		more = more > need ? more : need;
		more = (more + PAGE_BYTES - 1) / PAGE_BYTES;
		need = (need + PAGE_BYTES - 1) / PAGE_BYTES;
		if (__builtin_wasm_memory_grow(0, more) == SIZE_MAX) {
			more = need;
			if (__builtin_wasm_memory_grow(0, more) == SIZE_MAX) {
				errno = ENOMEM;
				return (void *)-1;
			}
		}
		end += more * PAGE_BYTES;
	}
	at += (uintptr_t)bytes;
	return (void *)old;
}

/* One thread: a variable will do. */
static struct {
	int (*compare)(const void *, const void *, void *);
	void *data;
} sorting;

static int by_data(const void *left, const void *right)
{
	return sorting.compare(left, right, sorting.data);
}

void qsort_r(void *array, size_t n, size_t bytes, int (*compare)(const void *, const void *, void *), void *data)
{
	sorting.compare = compare;
	sorting.data = data;
	qsort(array, n, bytes, by_data);
}

const char *strerrordesc_np(int code)
{
	return strerror(code);
}

const char *sigabbrev_np(int number)
{
	static const char *const names[] = {[1] = "HUP",   [2] = "INT",   [3] = "QUIT",  [4] = "ILL",   [5] = "TRAP",
					    [6] = "ABRT",  [7] = "BUS",   [8] = "FPE",   [9] = "KILL",  [10] = "USR1",
					    [11] = "SEGV", [12] = "USR2", [13] = "PIPE", [14] = "ALRM", [15] = "TERM"};

	return number > 0 && (size_t)number < sizeof(names) / sizeof(names[0]) ? names[number] : NULL;
}

void page_through_pager(void)
{
}

void page_end(void)
{
}

/* Files of programs are not here: names come from the segments, and from what the command found (names.c). */
int weft__symbolizer_open(struct weft__symbolizer **ret, const struct weft__symbolizer_opts *opts,
			  struct weft_error *err)
{
	(void)ret;
	(void)opts;
	(void)err;
	return -ENOSYS;
}

void weft__symbolizer_close(struct weft__symbolizer *sym)
{
	(void)sym;
}

int weft__symbolizer_add(struct weft__symbolizer *sym, const struct weft__symbol_module *module, uint32_t *ret_id)
{
	(void)sym;
	(void)module;
	(void)ret_id;
	return -ENOSYS;
}

int weft__symbolizer_resolve_all(struct weft__symbolizer *sym, const struct weft__symbol_place *places, size_t n,
				 void (*done)(size_t index, const struct weft__symbol_frames *frames, void *data),
				 void *data)
{
	(void)sym;
	(void)places;
	(void)n;
	(void)done;
	(void)data;
	return -ENOSYS;
}

const char *weft__symbolizer_why(const struct weft__symbolizer *sym, uint32_t module)
{
	(void)sym;
	(void)module;
	return "";
}

int weft__data_name(const struct weft__symbolizer_opts *opts, const struct weft__symbol_module *module,
		    struct weft__data_place *places, size_t n, struct weft__texts *texts)
{
	(void)opts;
	(void)module;
	(void)places;
	(void)n;
	(void)texts;
	return 0;
}

char *weft__demangle(const char *raw)
{
	(void)raw;
	return NULL;
}
