/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes as .eh_frame or .debug_frame, with or without .eh_frame_hdr: made into a table, asked for many places, and
 * then stacks of the same bytes are unwound by it.
 *
 * Input: flags (1: .debug_frame, 2: has a header, 4: code of an exception's unwinder), the header's length (2 bytes),
 * a seed, the header, the section. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "unwind/unwind.h"

#define SECTION_AT 0x500000u
#define HEADER_AT 0x4f0000u
#define STACK_AT 0x7f0000000000u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t next_random(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return *state >> 16;
}

/* A stack whose words are the input's, some turned into addresses of the table's code or of the stack itself. */
static void fill_stack(uint64_t *words, size_t n, const uint8_t *data, size_t size,
		       const struct weft__unwind_table *table, uint64_t *state)
{
	for (size_t i = 0; i < n; i++) {
		uint64_t r = next_random(state);

		if (r % 4 == 0 && size >= 8)
			memcpy(&words[i], data + r % (size - 7), 8);
		else if (r % 4 == 1)
			words[i] = STACK_AT + r / 4 % (n * 8);
		else
			words[i] = table->base + r / 4 % table->bytes;
	}
}

static void unwind_some(const struct weft__unwind_table *table, const struct weft__modules *set, const uint8_t *data,
			size_t size, uint64_t *state)
{
	enum { WORDS = 512 };
	uint64_t *words = malloc(WORDS * 8), out[128];

	for (int i = 0; i < 32 && words; i++) {
		struct weft__unwind_regs regs = {.valid = i & 1 ? ((uint64_t)1 << ARCH_REGS) - 1
								: (uint64_t)1 << ARCH_SP | (uint64_t)1 << ARCH_FP};
		struct weft__unwind_stack stack = {
			{{STACK_AT, STACK_AT + WORDS * 4, words},
			 {STACK_AT + 0x100000, STACK_AT + 0x100000 + WORDS * 4, words + WORDS / 2}}};
		uint32_t flags = 0;
		size_t n, max = i % 5 == 0 ? 3 : 128;

		fill_stack(words, WORDS, data, size, table, state);
		for (int reg = 0; reg < ARCH_REGS; reg++)
			regs.r[reg] = STACK_AT + next_random(state) % (WORDS * 4);
		if (i % 7 == 0)
			regs.r[ARCH_FP] = next_random(state);
		regs.pc = table->base + next_random(state) % table->bytes;
		n = weft__unwind(set, &regs, &stack, out, max, &flags);
		if (n < 1 || n > max || out[0] != regs.pc || !flags)
			abort();
	}
	free(words);
}

/* The same bytes as those of a module that is mapped and has no table yet. */
static void unwind_early(const struct weft__unwind_table *table, const struct weft__cfi_input *in, const uint8_t *data,
			 size_t size, uint64_t *state)
{
	struct weft__module *module = weft__module_new("early");
	struct weft__modules *set = NULL;

	if (!module)
		return;
	module->start = module->text_start = table->base;
	module->end = module->text_end = table->base + table->bytes;
	module->mapped = *in;
	module->pending = 1;
	if (weft__modules_new(&set, &module, 1) == 0)
		unwind_some(table, set, data, size, state);
	weft__modules_free(set);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct weft__cfi_input in = {.vaddr = SECTION_AT, .text_high = (uint64_t)1 << 47};
	struct weft__unwind_table *table = NULL;
	struct weft__modules *set = NULL;
	struct weft__module *module;
	uint64_t state;
	uint8_t *copy;

	if (size < 4)
		return 0;
	in.debug_frame = data[0] & 1;
	state = data[3];
	if (data[0] & 2) {
		in.hdr_n = (size_t)data[1] | (size_t)data[2] << 8;
		in.hdr_n = in.hdr_n < size - 4 ? in.hdr_n : size - 4;
		in.hdr = data + 4;
		in.hdr_vaddr = HEADER_AT;
	}
	in.n = size - 4 - in.hdr_n;
	copy = malloc(in.n ? in.n : 1); /* its own, so that reading past its end is seen */
	if (!copy)
		return 0;
	memcpy(copy, data + 4 + in.hdr_n, in.n);
	in.bytes = copy;
	if (weft__unwind_table_new(&table, &in, 1) == 0) {
		table->eh_return |= data[0] >> 2 & 1;
		for (int i = 0; i < 256; i++) {
			uint32_t number =
				weft__unwind_table_find(table, table->base + next_random(&state) % (table->bytes + 64));

			if (number >= table->n_rules)
				abort();
		}
		if (in.hdr && !in.debug_frame)
			unwind_early(table, &in, data, size, &state);
		module = weft__module_new("fuzz");
		if (module) {
			module->start = module->text_start = table->base;
			module->end = module->text_end = table->base + table->bytes;
			module->table = table;
			if (weft__modules_new(&set, &module, 1) == 0)
				unwind_some(table, set, data, size, &state);
			weft__modules_free(set);
		} else {
			weft__unwind_table_free(table);
		}
	}
	free(copy);
	return 0;
}
