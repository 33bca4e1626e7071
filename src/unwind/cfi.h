/* SPDX-License-Identifier: Apache-2.0 */
/* Reading .eh_frame and .debug_frame: the entries of a section, and the rows that one entry's program makes. The
 * bytes are not trusted: every read is bounded, and the work is, too. Any context: it allocates nothing. */
#ifndef WEFT_UNWIND_CFI_H
#define WEFT_UNWIND_CFI_H

#include <stddef.h>
#include <stdint.h>

#include "unwind/arch.h"

/* A section as it is mapped, all addresses as the linker gave them (before the load bias). */
struct weft__cfi_input {
	const uint8_t *bytes;
	size_t n;
	uint64_t vaddr;
	const uint8_t *hdr; /* .eh_frame_hdr, or NULL */
	size_t hdr_n;
	uint64_t hdr_vaddr;
	uint64_t text_low, text_high; /* code outside of this is not looked at */
	int debug_frame;              /* .debug_frame, which differs in a few fields */
};

enum cfi_how {
	CFI_SAME,
	CFI_UNDEFINED,
	CFI_OFFSET,     /* of a register: saved at CFA + value; of the CFA: register + value */
	CFI_VAL_OFFSET, /* is CFA + value */
	CFI_REGISTER,   /* is in another register */
	CFI_EXPR,       /* saved at the address that an expression gives */
	CFI_VAL_EXPR,   /* is what an expression gives */
};

/* One register's rule. Of an expression, value is the place of its bytes and len how many. */
struct cfi_where {
	uint8_t how;
	uint8_t reg;
	uint16_t len;
	int32_t value;
};

struct cfi_row {
	struct cfi_where cfa;
	struct cfi_where reg[ARCH_REGS];
	uint8_t ra_signed;
	uint8_t signal; /* the frame of a signal handler's return */
	uint8_t ra_reg;
	uint8_t unused; /* rows are compared as bytes */
};

struct cfi_fde {
	uint64_t begin, end; /* code */
	uint32_t at;         /* in the section */
	uint32_t cie_at;
	uint64_t ops_at, ops_n;
};

struct cfi_cie {
	int known; /* 0, 1, or -1: cannot be read */
	uint32_t at;
	uint64_t code_align;
	int64_t data_align;
	uint8_t fde_enc;
	uint8_t addr_size;
	uint8_t seg_size;
	uint8_t z;
	struct cfi_row initial;
};

/* Room to work in; zero it, then give it the input. */
struct weft__cfi {
	struct weft__cfi_input in;
	struct cfi_cie cie; /* the last one read: neighbours share it */
	uint64_t budget;    /* bytes of programs that may still be run */
	struct cfi_row row, kept[16];
};

void weft__cfi_init(struct weft__cfi *cfi, const struct weft__cfi_input *in);

/* The entries in the order of the section. `at` begins at 0. 1: `fde` is set; 0: the end; the walk passes over what
 * is not a frame entry and counts what cannot be read in `bad`. */
int weft__cfi_next(struct weft__cfi *cfi, uint64_t *at, struct cfi_fde *fde, uint32_t *bad);

/* How many entries .eh_frame_hdr lists (0 when it has no table that can be used), and where the i-th is in the
 * section. */
uint32_t weft__cfi_listed(const struct weft__cfi *cfi);
int weft__cfi_listed_at(const struct weft__cfi *cfi, uint32_t i, uint64_t *at);
int weft__cfi_fde(struct weft__cfi *cfi, uint64_t at, struct cfi_fde *fde);

/* Where .eh_frame begins according to its header, and where the last listed entry ends, as addresses; 0 or -1.
 * `avail` is how many bytes can be read from the header's begin on. */
int weft__cfi_extent(const uint8_t *hdr, size_t avail, uint64_t hdr_vaddr, uint64_t *begin, uint64_t *last,
		     size_t *hdr_n);

/* The former of these, without looking at all of the list. */
int weft__cfi_begin(const uint8_t *hdr, size_t avail, uint64_t hdr_vaddr, uint64_t *begin);

/* Runs the program of an entry and calls `row` for each place from which a new row holds. Negative when it is
 * malformed: the rows until there have been given. */
int weft__cfi_run(struct weft__cfi *cfi, const struct cfi_fde *fde,
		  void (*row)(void *arg, uint64_t pc, const struct cfi_row *row), void *arg);

/* Where the entry is that begins last before a place, or at it, going by .eh_frame_hdr; whether it reaches so far,
 * `fde` says. 0 or negative. */
int weft__cfi_search(const struct weft__cfi *cfi, uint64_t vaddr, uint64_t *at);
/* Runs the program of an entry as far as a place: then cfi->row is the row that holds there. 0 or negative. */
int weft__cfi_row_at(struct weft__cfi *cfi, const struct cfi_fde *fde, uint64_t vaddr);

#endif
