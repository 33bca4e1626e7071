/* SPDX-License-Identifier: Apache-2.0 */
/* A sample of a context switch to frames. COLLECTOR.
 *
 * The kernel gives its own frames, the registers that user code had, and a copy of what is on top of its stack,
 * which the unwinder walks as it would the stack itself. Where the copy ends before the stack does, the stack is
 * marked as cut. */
#include <errno.h>

#include "base/alloc.h"
#include "record/switch/state.h"
#include "unwind/unwind.h"
#include "weft/segment.h"

#define KERNEL_MOST 256

static uint64_t switch_walked[WEFT__UNWIND_DEPTH_MAX];

/* perf's numbers of registers, in order of DWARF's; perf gives those that were asked for in order of its own
 * numbers. */
#if defined(__x86_64__)
#define PERF_REGS 0xff01ffu /* ax bx cx dx si di bp sp ip, r8 to r15 */
static const uint8_t perf_reg[] = {0, 3, 2, 1, 4, 5, 6, 7, 9, 10, 11, 12, 13, 14, 15, 16};
#define PERF_REG_PC 8
#elif defined(__aarch64__)
#define PERF_REGS UINT64_C(0x1ffffffff) /* x0 to x30, sp, pc */
static const uint8_t perf_reg[] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
				   16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31};
#define PERF_REG_PC 32
#endif
#define N_PERF_REGS __builtin_popcountll(PERF_REGS)

uint64_t weft__switch_regs(void)
{
	return PERF_REGS;
}

static void regs_set(struct weft__unwind_regs *regs, const uint64_t *words)
{
	for (unsigned i = 0; i < sizeof(perf_reg); i++)
		regs->r[i] = words[perf_reg[i]];
	regs->pc = words[PERF_REG_PC];
	regs->valid = (UINT64_C(1) << sizeof(perf_reg)) - 1;
#if defined(__x86_64__)
	regs->r[ARCH_RA] = regs->pc;
	regs->valid |= UINT64_C(1) << ARCH_RA;
#endif
}

static int frames_room(struct weft__switch_stack *stack, uint64_t n)
{
	uint64_t *grown;

	if (n <= stack->cap)
		return 0;
	grown = weft__realloc(stack->frames, n * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	stack->frames = grown;
	stack->cap = (uint32_t)n;
	return 0;
}

/* The user's part: what kind of registers, these, the size of the copy, it, and how much of it is filled. */
static uint32_t walk_user(const uint64_t *words, uint64_t n, uint32_t *flags)
{
	struct weft__unwind_stack stack = {0};
	struct weft__unwind_regs regs = {0};
	const struct weft__modules *modules;
	uint64_t size, filled;
	uint32_t visit, n_found;

	if (n < 2 + N_PERF_REGS || words[0] != PERF_SAMPLE_REGS_ABI_64)
		return 0;
	regs_set(&regs, words + 1);
	size = words[1 + N_PERF_REGS];
	words += 2 + N_PERF_REGS;
	n -= 2 + (uint64_t)N_PERF_REGS;
	if (size % 8 || size / 8 >= n)
		size = filled = 0;
	else
		filled = size ? words[size / 8] : 0;
	if (filled > size)
		filled = size;
	stack.range[0] = (struct weft__unwind_range){regs.r[ARCH_SP], regs.r[ARCH_SP] + filled, words};
	modules = weft__modules_enter(&visit);
	n_found = (uint32_t)weft__unwind(modules, &regs, &stack, switch_walked, WEFT__UNWIND_DEPTH_MAX, flags);
	/* In code that is known it was for want of stack that the walk ended. The copy may end before its size,
	 * where a page was not there. */
	if (modules && n_found && *flags & WEFT__UNWIND_LOST && weft__modules_find(modules, switch_walked[n_found - 1]))
		*flags = (*flags & ~(uint32_t)WEFT__UNWIND_LOST) | WEFT__UNWIND_CUT;
	weft__modules_leave(visit);
	return n_found;
}

int weft__switch_unwind(struct weft__switch_stack *stack, const uint64_t *words, uint32_t n_words)
{
	uint64_t n = n_words < 4 ? 0 : n_words - 4, n_chain = n_words < 4 ? 0 : words[3];
	const uint64_t *chain = words + 4;
	uint32_t flags = 0, n_user, i;

	stack->n_user = stack->n_kernel = stack->flags = 0;
	if (n_chain > n)
		return 0;
	n_user = walk_user(chain + n_chain, n - n_chain, &flags);
	if (frames_room(stack, n_user + n_chain) < 0)
		return -ENOMEM;
	for (i = 0; i < n_user; i++)
		stack->frames[i] = switch_walked[i];
	stack->n_user = n_user;
	stack->flags = flags;
	for (i = 0; i < n_chain && stack->n_kernel < KERNEL_MOST; i++)
		if (chain[i] < (uint64_t)PERF_CONTEXT_MAX) {
			/* As in the user's part: an address lies in the instruction that runs. */
			stack->frames[n_user + stack->n_kernel] = chain[i] - (stack->n_kernel != 0);
			stack->n_kernel++;
		}
	return 0;
}
