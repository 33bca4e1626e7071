/* SPDX-License-Identifier: Apache-2.0 */
/* The numbers and pointers of call frame information, from bytes that are not trusted. Any context. */
#ifndef WEFT_UNWIND_CFI_IN_H
#define WEFT_UNWIND_CFI_IN_H

#include "base/bytes.h"
#include "unwind/cfi.h"

enum pointer_enc { ENC_OMIT = 0xff, ENC_INDIRECT = 0x80, ENC_PCREL = 0x10, ENC_DATAREL = 0x30, ENC_ALIGNED = 0x50 };

static inline uint64_t in_fixed(struct weft__in *in, unsigned bytes)
{
	const uint8_t *p = in_bytes(in, bytes);
	uint64_t v = 0;

	if (p)
		memcpy(&v, p, bytes);
	return v;
}

/* The format part of an encoding: only the number. */
static inline uint64_t in_number(struct weft__in *in, uint8_t enc, unsigned addr_size)
{
	switch (enc & 0x0f) {
	case 0x00:
		return in_fixed(in, addr_size);
	case 0x01:
		return in_varint(in);
	case 0x02:
		return in_fixed(in, 2);
	case 0x03:
		return in_fixed(in, 4);
	case 0x04:
	case 0x0c:
		return in_fixed(in, 8);
	case 0x09:
		return (uint64_t)in_sleb(in);
	case 0x0a:
		return (uint64_t)(int64_t)(int16_t)in_fixed(in, 2);
	case 0x0b:
		return (uint64_t)(int64_t)(int32_t)in_fixed(in, 4);
	}
	return in_fail(in);
}

/* A pointer: `vaddr` is where `start` is. Those that have to be followed, or that start from a base which nothing
 * says, fail. */
static inline uint64_t in_pointer(struct weft__in *in, uint8_t enc, const uint8_t *start, uint64_t vaddr,
				  uint64_t data_vaddr, unsigned addr_size)
{
	uint64_t here, v;

	if (enc == ENC_ALIGNED)
		in_bytes(in, -(vaddr + (uint64_t)(in->p - start)) & (addr_size - 1));
	here = vaddr + (uint64_t)(in->p - start);
	v = in_number(in, enc == ENC_ALIGNED ? 0 : enc, addr_size);
	switch (enc & 0xf0) {
	case 0x00:
	case ENC_ALIGNED:
		return v;
	case ENC_PCREL:
		return v + here;
	case ENC_DATAREL:
		return v + data_vaddr;
	}
	return in_fail(in);
}

/* Runs a program, of a CIE or an FDE, on cfi->row. `row` may be NULL. -ERANGE: it goes on behind `end`, and cfi->row
 * is the row that holds there. */
int weft__cfi_program(struct weft__cfi *cfi, struct weft__in in, uint64_t pc, uint64_t end,
		      void (*row)(void *arg, uint64_t pc, const struct cfi_row *row), void *arg);

#endif
