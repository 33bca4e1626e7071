/* SPDX-License-Identifier: Apache-2.0 */
/* Which native frames are Ruby's interpreter: the function that runs Ruby code (rb_vm_exec), each call of which is one
 * run of Ruby frames, and the loop over instructions inside it (vm_exec_core). Neither is a symbol that a stripped
 * library shows. So Ruby code is called in two ways, and in both a C function looks at its callers: the outermost
 * function of libruby that both ways have in common is the one. Where functions begin and end is in the library's
 * .eh_frame_hdr, which stripping leaves. RUBY, but for weft__rb_interprets. */
#define _GNU_SOURCE 1
#include "binding.h"

#include <execinfo.h>
#include <link.h>
#include <string.h>

#define DEPTH 64
#define BIG_BYTES 8192 /* the loop over all instructions has more */

struct range {
	uint64_t start, end;
};

struct table {
	uint64_t address; /* asked for */
	const struct {
		int32_t start, rule;
	} * rows; /* sorted; relative to base */
	uint32_t n;
	uint64_t base;
};

static struct range exec, core, own; /* own: all of this library */
static void *seen[2][DEPTH];
static int n_seen[2], at;

/* The table of the object that has the address, when it is of the one kind that linkers make. */
static int find_table(struct dl_phdr_info *info, size_t size, void *data)
{
	struct table *table = data;
	bool here = false;

	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		here |= p->p_type == PT_LOAD && table->address - info->dlpi_addr - p->p_vaddr < p->p_memsz;
	}
	for (int i = 0; here && i < info->dlpi_phnum; i++) {
		const uint8_t *hdr = (const uint8_t *)info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;

		if (info->dlpi_phdr[i].p_type != PT_GNU_EH_FRAME || hdr[0] != 1 || hdr[1] != 0x1b || hdr[2] != 0x03 ||
		    hdr[3] != 0x3b)
			continue;
		memcpy(&table->n, hdr + 8, sizeof(table->n));
		table->rows = (const void *)(hdr + 12);
		table->base = (uint64_t)(uintptr_t)hdr;
	}
	return here;
}

/* The function that the address is in; {0} when that is not known. */
static struct range function_at(uint64_t address)
{
	struct table table = {.address = address};
	uint32_t low = 0, high;

	dl_iterate_phdr(find_table, &table);
	high = table.n;
	while (high - low > 1) {
		uint32_t middle = (low + high) / 2;

		if (table.base + (uint64_t)(int64_t)table.rows[middle].start <= address)
			low = middle;
		else
			high = middle;
	}
	if (!table.n || high >= table.n)
		return (struct range){0};
	return (struct range){table.base + (uint64_t)(int64_t)table.rows[low].start,
			      table.base + (uint64_t)(int64_t)table.rows[high].start};
}

static VALUE look(VALUE self)
{
	n_seen[at] = backtrace(seen[at], DEPTH);
	return Qnil;
}

/* Frame i of a way, as the address in the call. */
static uint64_t frame_of(int way, int i)
{
	return (uint64_t)(uintptr_t)seen[way][i] - 1;
}

static bool has(int way, struct range function, int n)
{
	for (int i = 1; i < n; i++)
		if (frame_of(way, i) - function.start < function.end - function.start)
			return true;
	return false;
}

/* How many frames there are up to the one that began the way, which is of this library. */
static int depth_of(int way, struct range mine)
{
	for (int i = 1; i < n_seen[way]; i++)
		if (frame_of(way, i) - mine.start < mine.end - mine.start)
			return i;
	return 0;
}

/* Ruby code, called by a method and by yield: lib/weft.rb has both. */
__attribute__((noinline)) static VALUE calibrate(VALUE self)
{
	struct range mine, function;
	int n[2];

	at = 0;
	rb_funcall(self, rb_intern("look_by_method"), 0);
	at = 1;
	rb_yield(Qnil);
	mine = function_at((uint64_t)(uintptr_t)calibrate);
	n[0] = depth_of(0, mine);
	n[1] = depth_of(1, mine);
	for (int i = n[0] - 1; i > 1 && !exec.end; i--) {
		function = function_at(frame_of(0, i));
		if (!function.end || !has(1, function, n[1]))
			continue;
		exec = function;
		function = function_at(frame_of(0, i - 1));
		if (exec.end - exec.start < BIG_BYTES && function.end - function.start >= BIG_BYTES)
			core = function;
	}
	return rb_ary_new_from_args(2, ULL2NUM(exec.end - exec.start), ULL2NUM(core.end - core.start));
}

VALUE weft__rb_calibrate(VALUE native)
{
	return rb_funcall(native, rb_intern("find_interpreter"), 0);
}

enum weft__rb_interprets weft__rb_interprets(uint64_t address)
{
	if (address - own.start < own.end - own.start)
		return WEFT__RB_OWN;
	if (address - exec.start < exec.end - exec.start)
		return WEFT__RB_EXEC;
	return address - core.start < core.end - core.start ? WEFT__RB_CORE : WEFT__RB_NATIVE;
}

/* The code of the object that has the address. */
static int find_code(struct dl_phdr_info *info, size_t size, void *data)
{
	uint64_t address = (uint64_t)(uintptr_t)data;

	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uint64_t start = info->dlpi_addr + p->p_vaddr;

		if (p->p_type == PT_LOAD && address - start < p->p_memsz) {
			own = (struct range){start, start + p->p_memsz};
			return 1;
		}
	}
	return 0;
}

void weft__rb_interpreter_init(VALUE native)
{
	dl_iterate_phdr(find_code, (void *)(uintptr_t)find_code);
	rb_define_singleton_method(native, "look", look, 0);
	rb_define_singleton_method(native, "calibrate", calibrate, 0);
}
