/* SPDX-License-Identifier: Apache-2.0 */
/* aarch64: register numbers are DWARF's. Any context. */
#ifndef WEFT_UNWIND_ARCH_AARCH64_H
#define WEFT_UNWIND_ARCH_AARCH64_H

#include <stddef.h>
#include <stdint.h>
#include <ucontext.h>

#define ARCH_REGS 33 /* x0..x30, sp, and the program counter of an interrupted frame */
#define ARCH_FP 29
#define ARCH_SP 31
#define ARCH_RA 30
#define ARCH_PC 32

/* x19..x30. */
#define ARCH_SAVED 12
#define ARCH_SAVED_REGS                                                                                                \
	{                                                                                                              \
		19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30                                                         \
	}
#define ARCH_SAVED_FP 10
#define ARCH_SAVED_RA 11

#define ARCH_RA_FIXED 0
#define ARCH_RA_OFFSET 0

/* libgcc's contexts have not been looked at here. */
#define ARCH_RED_ZONE 0 /* bytes below the stack pointer that are still the function's */

#define ARCH_EH_REGS 0

#define ARCH_CODE_BYTES 8

/* Without the pointer authentication code: user addresses have 48 bits where it is in use. */
static inline uint64_t arch_strip(uint64_t ra)
{
	return ra & 0xffffffffffffULL;
}

static inline uint64_t arch_from_context(uint64_t *regs, const ucontext_t *uc)
{
	for (int i = 0; i < 31; i++)
		regs[i] = uc->uc_mcontext.regs[i];
	regs[ARCH_SP] = uc->uc_mcontext.sp;
	regs[ARCH_PC] = uc->uc_mcontext.pc;
	return uc->uc_mcontext.pc;
}

static inline uint64_t arch_context_sp(const ucontext_t *uc)
{
	return uc->uc_mcontext.sp;
}

static inline __attribute__((always_inline)) uint64_t arch_here(uint64_t *regs, uint64_t *valid)
{
	uint64_t pc, sp;

	__asm__ volatile("stp x19, x20, [%2, #152]\n\t"
			 "stp x21, x22, [%2, #168]\n\t"
			 "stp x23, x24, [%2, #184]\n\t"
			 "stp x25, x26, [%2, #200]\n\t"
			 "stp x27, x28, [%2, #216]\n\t"
			 "stp x29, x30, [%2, #232]\n\t"
			 "mov %1, sp\n\t"
			 "adr %0, ."
			 : "=&r"(pc), "=&r"(sp)
			 : "r"(regs)
			 : "memory");
	regs[ARCH_SP] = sp;
	regs[ARCH_PC] = pc;
	*valid = UINT64_C(0xfff) << 19 | UINT64_C(1) << ARCH_SP;
	return pc;
}

/* The kernel's frame: 128 bytes of siginfo_t, then an ucontext_t, with x0..x30, sp and pc one after the other. */
static inline uint64_t arch_context_offset(unsigned reg)
{
	return 128 + offsetof(ucontext_t, uc_mcontext) + offsetof(mcontext_t, regs) + 8 * (uint64_t)reg;
}

/* Not looked for on this machine: such a stack is lost at its end. */
static inline int arch_is_context_end(const uint8_t *code)
{
	(void)code;
	return 0;
}

static inline int arch_is_stack_left(const uint8_t *code)
{
	(void)code;
	return 0;
}

/* mov x8, #139; svc #0 */
static inline int arch_is_sigreturn(const uint8_t *code)
{
	uint32_t first = (uint32_t)code[0] | (uint32_t)code[1] << 8 | (uint32_t)code[2] << 16 | (uint32_t)code[3] << 24;
	uint32_t second =
		(uint32_t)code[4] | (uint32_t)code[5] << 8 | (uint32_t)code[6] << 16 | (uint32_t)code[7] << 24;

	return first == 0xd2801168 && second == 0xd4000001;
}

/* The return address of a leaf is in a register here, not on the stack. */
static inline int arch_leaf_offset(const uint8_t *code)
{
	(void)code;
	return -1;
}

#endif
