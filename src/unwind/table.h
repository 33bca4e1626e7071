/* SPDX-License-Identifier: Apache-2.0 */
/* The unwind rules of one ELF image, compiled from its call frame information into something that a signal handler
 * can search. A table does not change once it is made.
 *
 * Code is cut into pages of 4 KiB; each page knows its first row, and a row is 2 bytes of place and 2 bytes of rule.
 * Rules are few (thousands for a million rows), because compilers make the same frames again and again. What is not a
 * plain frame is a special: bytes aside, the registers' rules one by one, with their expressions. */
#ifndef WEFT_UNWIND_TABLE_H
#define WEFT_UNWIND_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "unwind/arch.h"
#include "unwind/cfi.h"

enum weft__rule_kind {
	RULE_NONE,    /* nothing is known of this code */
	RULE_PLAIN,   /* CFA = register + offset, registers saved at fixed places */
	RULE_END,     /* no caller: the thread begins here */
	RULE_SPECIAL, /* cfa_off is the special's place */
};

#define RULE_SAME 0
#define RULE_UNDEFINED INT16_MIN

struct weft__rule {
	uint8_t kind;
	uint8_t cfa_reg;
	uint8_t ra_signed;
	uint8_t unused;
	int32_t cfa_off;
	int16_t saved[ARCH_SAVED]; /* at CFA + 8 * this, or RULE_SAME, or RULE_UNDEFINED */
};

/* In the bytes aside: this, n wheres, and the expressions' bytes. An expression's value is its distance from this. */
struct weft__special {
	struct cfi_where cfa;
	uint16_t n;
	uint8_t signal;
	uint8_t ra_reg;
	uint8_t ra_signed;
	uint8_t unused;
	uint16_t bytes; /* all of it */
	struct cfi_where where[];
};

struct weft__unwind_table_stats {
	uint64_t code_bytes; /* that have rules */
	uint32_t fdes;
	uint32_t bad_fdes;   /* could not be read; their code has the rules up to there, or none */
	uint32_t cut_rules;  /* more different rules than a table holds: only the CFA and the frame pointer were kept */
	uint32_t lost_rules; /* not even that */
};

struct weft__unwind_table {
	uint64_t base;  /* first page, as an address of the file */
	uint64_t bytes; /* of code, from base on */
	uint32_t n_rows, n_rules, n_pages, specials_n;
	const uint32_t *page; /* [n_pages + 1]: the first row of each */
	const uint16_t *row_low;
	const uint16_t *row_rule;
	const struct weft__rule *rules; /* [0] is RULE_NONE */
	const uint8_t *specials;
	int eh_return; /* some code returns to where a register says, as libgcc's unwinder does to who catches */
	size_t memory_bytes;
	struct weft__unwind_table_stats stats;
};

#define TABLE_PAGE_BITS 12

/* CALLER and COLLECTOR. From one section or two, of which the first one is believed where both know the code. 0,
 * -ENOMEM, or -ENOENT when nothing in it can be used. */
int weft__unwind_table_new(struct weft__unwind_table **ret, const struct weft__cfi_input *in, unsigned n);
/* The same; -ECANCELED when `halt`, which is asked about every millisecond, says so. NULL: nobody is asked. */
int weft__unwind_table_make(struct weft__unwind_table **ret, const struct weft__cfi_input *in, unsigned n,
			    int (*halt)(void));
/* The same from the sections of a file, .eh_frame and .debug_frame; `eh_frame`, when not NULL, is used instead of the
 * former. -errno when it cannot be read. */
int weft__unwind_table_open(struct weft__unwind_table **ret, const char *path, const struct weft__cfi_input *eh_frame);
int weft__unwind_table_read(struct weft__unwind_table **ret, int fd, const struct weft__cfi_input *eh_frame,
			    int (*halt)(void));
void weft__unwind_table_free(struct weft__unwind_table *table);

/* HOT. The number of the rule for a place, an address of the file. 0 is RULE_NONE. */
static inline uint32_t weft__unwind_table_find(const struct weft__unwind_table *table, uint64_t vaddr)
{
	uint64_t at = vaddr - table->base;
	const uint16_t *low;
	uint32_t first, n;
	uint16_t key;

	if (at >= table->bytes)
		return 0;
	first = table->page[at >> TABLE_PAGE_BITS];
	n = table->page[(at >> TABLE_PAGE_BITS) + 1] - first;
	key = (uint16_t)(at & ((1u << TABLE_PAGE_BITS) - 1));
	low = table->row_low + first;
	while (n > 1) {
		uint32_t half = n / 2;

		low = low[half] <= key ? low + half : low;
		n -= half;
	}
	/* Row 0 is RULE_NONE and stands before every page, so there always is one before. */
	first = (uint32_t)(low - table->row_low);
	return table->row_rule[n == 1 && *low <= key ? first : first - 1];
}

#endif
