/* SPDX-License-Identifier: Apache-2.0 */
/* x86-64: register numbers are DWARF's. Any context. */
#ifndef WEFT_UNWIND_ARCH_X86_64_H
#define WEFT_UNWIND_ARCH_X86_64_H

#include <stdint.h>
#include <ucontext.h>

#define ARCH_REGS 17 /* rax rdx rcx rbx rsi rdi rbp rsp r8..r15, and the return address */
#define ARCH_FP 6
#define ARCH_SP 7
#define ARCH_RA 16

/* What a function keeps for its caller: rbx, rbp, r12..r15. The frame pointer's place among them is ARCH_SAVED_FP. */
#define ARCH_SAVED 6
#define ARCH_SAVED_REGS                                                                                                \
	{                                                                                                              \
		3, 6, 12, 13, 14, 15                                                                                   \
	}
#define ARCH_SAVED_FP 1

/* The call pushes the return address, so it is always here in a rule that is not special. */
#define ARCH_RA_FIXED 1
#define ARCH_RA_OFFSET (-8)

/* Below the stack pointer, and still the function's: no handler's frame is put there. */
#define ARCH_RED_ZONE 128

/* Registers that libgcc's unwinder keeps in a context. */
#define ARCH_EH_REGS 17

/* Bytes of code before which a read stays in the page of the first one. */
#define ARCH_CODE_BYTES 9

static inline uint64_t arch_strip(uint64_t ra)
{
	return ra;
}

/* The registers that a signal handler was given, in DWARF's order; answers the program counter. */
static inline uint64_t arch_from_context(uint64_t *regs, const ucontext_t *uc)
{
	static const uint8_t order[16] = {REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP, REG_RSP,
					  REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
	uint64_t pc = (uint64_t)uc->uc_mcontext.gregs[REG_RIP];

	for (int i = 0; i < 16; i++)
		regs[i] = (uint64_t)uc->uc_mcontext.gregs[order[i]];
	regs[ARCH_RA] = pc;
	return pc;
}

static inline uint64_t arch_context_sp(const ucontext_t *uc)
{
	return (uint64_t)uc->uc_mcontext.gregs[REG_RSP];
}

/* The registers at this place that a caller's frame can be found with; answers the program counter. What is known of
 * them is in *valid. */
static inline __attribute__((always_inline)) uint64_t arch_here(uint64_t *regs, uint64_t *valid)
{
	uint64_t pc, sp;

	__asm__ volatile("movq %%rbx, 24(%2)\n\t"
			 "movq %%rbp, 48(%2)\n\t"
			 "movq %%r12, 96(%2)\n\t"
			 "movq %%r13, 104(%2)\n\t"
			 "movq %%r14, 112(%2)\n\t"
			 "movq %%r15, 120(%2)\n\t"
			 "movq %%rsp, %1\n\t"
			 "leaq 0(%%rip), %0"
			 : "=&r"(pc), "=&r"(sp)
			 : "r"(regs)
			 : "memory");
	regs[ARCH_SP] = sp;
	regs[ARCH_RA] = pc;
	*valid = UINT64_C(1) << 3 | UINT64_C(1) << ARCH_FP | UINT64_C(1) << ARCH_SP | UINT64_C(15) << 12;
	return pc;
}

/* Where register i lies in the frame that the kernel made, from the stack pointer at the trampoline: an ucontext_t. */
static inline uint64_t arch_context_offset(unsigned reg)
{
	static const uint8_t order[ARCH_REGS] = {REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI,
						 REG_RBP, REG_RSP, REG_R8,  REG_R9,  REG_R10, REG_R11,
						 REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP};

	return 40 + 8 * (uint64_t)order[reg];
}

static inline int arch_same(const uint8_t *code, const uint8_t *like, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (code[i] != like[i])
			return 0;
	return 1;
}

/* mov $15, %rax; syscall: what returns from a signal handler, when its maker wrote no unwind information (musl). */
static inline int arch_is_sigreturn(const uint8_t *code)
{
	static const uint8_t trampoline[9] = {0x48, 0xc7, 0xc0, 0x0f, 0x00, 0x00, 0x00, 0x0f, 0x05};

	return arch_same(code, trampoline, sizeof(trampoline));
}

/* Where a function returns to whose stack makecontext made, in the C library: mov %rbx,%rsp; mov (%rsp),%rdi; test. */
static inline int arch_is_context_end(const uint8_t *code)
{
	static const uint8_t plain[9] = {0x48, 0x89, 0xdc, 0x48, 0x8b, 0x3c, 0x24, 0x48, 0x85};
	static const uint8_t marked[9] = {0xf3, 0x0f, 0x1e, 0xfa, 0x48, 0x89, 0xdc, 0x48, 0x8b};

	return arch_same(code, plain, sizeof(plain)) || arch_same(code, marked, sizeof(marked));
}

/* Where C code returns to that Go called: mov 8(%rsp),%rdi; mov 8(%rdi),%rsi. It was called on another stack, about
 * which the rules say nothing. */
static inline int arch_is_stack_left(const uint8_t *code)
{
	static const uint8_t back[9] = {0x48, 0x8b, 0x7c, 0x24, 0x08, 0x48, 0x8b, 0x77, 0x08};

	return arch_same(code, back, sizeof(back));
}

/* How far above the stack pointer the return address is, for code without rules that stops here, or -1 when the frame
 * pointer must do: push %rbp (perhaps after endbr64) and ret are before and after the frame, mov %rsp,%rbp is one
 * push later. */
static inline int arch_leaf_offset(const uint8_t *code)
{
	static const uint8_t endbr[4] = {0xf3, 0x0f, 0x1e, 0xfa};
	static const uint8_t mov[3] = {0x48, 0x89, 0xe5};
	static const uint8_t stub[2] = {0xff, 0x25};

	if (arch_same(code, endbr, sizeof(endbr)))
		code += sizeof(endbr);
	if (*code == 0x55 || *code == 0xc3)
		return 0;
	/* A stub of the linker: jmp *(%rip), and push of its number, when that is bound at the first call. */
	if (arch_same(code, stub, sizeof(stub)) || *code == 0x68)
		return 0;
	return arch_same(code, mov, sizeof(mov)) ? 8 : -1;
}

#endif
