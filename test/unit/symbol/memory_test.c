/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that runs out at each allocation in turn. */
#include <errno.h>
#include <stdlib.h>

#include "unit/symbol/fixture.h"
#include "weft/hooks.h"
#include "weft_test.h"

static long left; /* allocations that succeed */

static void *resize(void *ptr, size_t bytes, void *data)
{
	(void)data;
	return left-- > 0 ? realloc(ptr, bytes) : NULL;
}

static void release(void *ptr, void *data)
{
	(void)data;
	free(ptr);
}

/* Whether all went well, with that many allocations. */
static bool run(long allowed, uint64_t mark, const struct weft__symbol_module *module, uint64_t address)
{
	struct weft__symbolizer_opts opts = {
		.debug_dirs = "/nonexistent", .jit_dir = "/nonexistent", .no_debuginfod = true};
	struct weft__symbolizer *sym = NULL;
	struct weft__symbol_place place = {.ip = mark - address + FIXTURE_START};
	struct weft__symbol_frames frames;
	int n;

	left = allowed;
	if (weft__symbolizer_open(&sym, &opts, NULL) < 0)
		return false;
	n = weft__symbolizer_add(sym, module, &place.module);
	if (n == 0)
		n = weft__symbolizer_resolve(sym, &place, &frames);
	CHECK(n > 0 || n == -ENOMEM);
	if (n == -ENOMEM) { /* it can be asked again */
		left = 1000000;
		n = weft__symbolizer_add(sym, module, &place.module);
		CHECK_EQ(n, 0);
		CHECK(weft__symbolizer_resolve(sym, &place, &frames) > 0);
		n = -ENOMEM;
	}
	weft__symbolizer_close(sym);
	return n > 0;
}

static void exhaust(const char *name, const char *symbol)
{
	struct weft_allocator allocator = {resize, release, NULL};
	struct weft__symbol_module module;
	uint64_t address, mark;
	long allowed;

	REQUIRE(fixture_module(name, &module, &address));
	mark = fixture_symbol(symbol, "mark_leaf");
	weft_set_allocator(&allocator);
	for (allowed = 0; allowed < 100000 && !run(allowed, mark, &module, address); allowed++)
		;
	weft_set_allocator(NULL);
	CHECK(allowed > 10 && allowed < 100000);
}

TEST(a_program_is_read_with_little_memory)
{
	exhaust("inline", "inline");
}

TEST(packed_dwarf_is_read_with_little_memory)
{
	exhaust("packed", "packed");
}

TEST(minidebuginfo_is_read_with_little_memory)
{
	exhaust("mini", "inline");
}
