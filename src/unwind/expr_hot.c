/* SPDX-License-Identifier: Apache-2.0 */
/* DWARF expressions, as far as unwind rules have them: arithmetic, registers, loads from the stack, jumps. Bounded in
 * steps and depth. */
#include "base/bytes.h"
#include "unwind/walk.h"

#define DEPTH 24
#define STEPS 256

struct eval {
	const struct weft__walk *w;
	struct weft__in in;
	uint64_t v[DEPTH];
	unsigned n;
	int bad;
	int missing;
};

static void push(struct eval *e, uint64_t v)
{
	if (e->n < DEPTH)
		e->v[e->n++] = v;
	else
		e->bad = 1;
}

static uint64_t pop(struct eval *e)
{
	if (e->n)
		return e->v[--e->n];
	e->bad = 1;
	return 0;
}

static uint64_t read_fixed(struct weft__in *in, unsigned bytes, int is_signed)
{
	const uint8_t *p = in_bytes(in, bytes);
	uint64_t v = 0;

	for (unsigned i = 0; p && i < bytes; i++)
		v |= (uint64_t)p[i] << 8 * i;
	if (is_signed && bytes > 0 && bytes < 8 && v >> (8 * bytes - 1) & 1)
		v |= ~(uint64_t)0 << 8 * bytes;
	return v;
}

static void push_reg(struct eval *e, uint64_t reg)
{
	uint64_t off = (uint64_t)in_sleb(&e->in);

	/* On x86-64 the return address column names the program counter of this frame. */
	if (ARCH_RA_FIXED && reg == ARCH_RA) {
		push(e, e->w->pc + off);
	} else if (reg < ARCH_REGS && e->w->valid >> reg & 1) {
		push(e, e->w->r[reg] + off);
	} else {
		e->missing = 1;
		e->bad = 1;
	}
}

static void deref(struct eval *e, unsigned bytes)
{
	uint64_t addr = pop(e), word = 0;

	if (bytes == 0 || bytes > 8 || !walk_load(e->w, addr, &word)) {
		e->bad = 1;
		return;
	}
	push(e, bytes < 8 ? word & (((uint64_t)1 << 8 * bytes) - 1) : word);
}

/* Both operands popped: b was on top. */
static void binary(struct eval *e, uint8_t op)
{
	uint64_t b = pop(e), a = pop(e), v = 0;

	switch (op) {
	case 0x1a:
		v = a & b;
		break;
	case 0x1b: /* signed; what overflows has no value */
		if (b == 0 || (b == UINT64_MAX && a == (uint64_t)1 << 63))
			e->bad = 1;
		else
			v = (uint64_t)((int64_t)a / (int64_t)b);
		break;
	case 0x1c:
		v = a - b;
		break;
	case 0x1d:
		if (b == 0)
			e->bad = 1;
		else
			v = a % b;
		break;
	case 0x1e:
		v = a * b;
		break;
	case 0x21:
		v = a | b;
		break;
	case 0x22:
		v = a + b;
		break;
	case 0x24:
		v = b < 64 ? a << b : 0;
		break;
	case 0x25:
		v = b < 64 ? a >> b : 0;
		break;
	case 0x26:
		v = (uint64_t)((int64_t)a >> (b < 63 ? b : 63));
		break;
	case 0x27:
		v = a ^ b;
		break;
	case 0x29:
		v = a == b;
		break;
	case 0x2a:
		v = (int64_t)a >= (int64_t)b;
		break;
	case 0x2b:
		v = (int64_t)a > (int64_t)b;
		break;
	case 0x2c:
		v = (int64_t)a <= (int64_t)b;
		break;
	case 0x2d:
		v = (int64_t)a < (int64_t)b;
		break;
	case 0x2e:
		v = a != b;
		break;
	default:
		e->bad = 1;
	}
	push(e, v);
}

static void pick(struct eval *e, unsigned depth)
{
	if (depth < e->n)
		push(e, e->v[e->n - 1 - depth]);
	else
		e->bad = 1;
}

/* The top `n` values turned by one: the top one goes under the others. */
static void rotate(struct eval *e, unsigned n)
{
	uint64_t top;

	if (e->n < n) {
		e->bad = 1;
		return;
	}
	top = e->v[e->n - 1];
	for (unsigned i = 1; i < n; i++)
		e->v[e->n - i] = e->v[e->n - i - 1];
	e->v[e->n - n] = top;
}

static void jump(struct eval *e, const uint8_t *begin, int taken)
{
	int64_t by = (int16_t)read_fixed(&e->in, 2, 1);

	if (!taken || e->in.bad)
		return;
	if (by < begin - e->in.p || by > e->in.end - e->in.p)
		e->bad = 1;
	else
		e->in.p += by;
}

static void stack_op(struct eval *e, uint8_t op, const uint8_t *begin)
{
	uint64_t a;

	switch (op) {
	case 0x06:
		deref(e, 8);
		break;
	case 0x12: /* dup */
		pick(e, 0);
		break;
	case 0x13: /* drop */
		pop(e);
		break;
	case 0x14: /* over */
		pick(e, 1);
		break;
	case 0x15:
		pick(e, in_u8(&e->in));
		break;
	case 0x16: /* swap */
		rotate(e, 2);
		break;
	case 0x17:
		rotate(e, 3);
		break;
	case 0x19: /* abs */
		a = pop(e);
		push(e, (int64_t)a < 0 ? -a : a);
		break;
	case 0x1f: /* neg */
		push(e, -pop(e));
		break;
	case 0x20: /* not */
		push(e, ~pop(e));
		break;
	case 0x23: /* plus_uconst */
		a = in_varint(&e->in);
		push(e, pop(e) + a);
		break;
	case 0x28: /* bra */
		a = pop(e);
		jump(e, begin, a != 0);
		break;
	case 0x2f: /* skip */
		jump(e, begin, 1);
		break;
	case 0x94:
		deref(e, in_u8(&e->in));
		break;
	case 0x96: /* nop */
		break;
	default:
		binary(e, op);
	}
}

static void step(struct eval *e, uint8_t op, const uint8_t *begin)
{
	if (op >= 0x30 && op <= 0x4f) { /* lit */
		push(e, op - 0x30u);
	} else if (op >= 0x70 && op <= 0x8f) { /* breg */
		push_reg(e, op - 0x70u);
	} else if (op == 0x92) { /* bregx */
		push_reg(e, in_varint(&e->in));
	} else if (op >= 0x08 && op <= 0x0f) { /* const1u, const1s, .. const8s */
		push(e, read_fixed(&e->in, 1u << (op - 0x08) / 2, op & 1));
	} else if (op == 0x10) {
		push(e, in_varint(&e->in));
	} else if (op == 0x11) {
		push(e, (uint64_t)in_sleb(&e->in));
	} else {
		stack_op(e, op, begin);
	}
}

int weft__walk_expr(const struct weft__walk *w, const uint8_t *expr, uint32_t n, const uint64_t *begin, uint64_t *value,
		    int *missing)
{
	struct eval e;
	int steps = 0;

	e.w = w;
	e.in = weft__in(expr, n);
	e.n = 0;
	e.bad = 0;
	e.missing = 0;
	if (begin)
		push(&e, *begin);
	while (e.in.p < e.in.end && !e.bad && !e.in.bad && steps++ < STEPS)
		step(&e, *e.in.p++, expr);
	if (e.missing)
		*missing = 1;
	if (e.bad || e.in.bad || e.in.p < e.in.end || !e.n)
		return 0;
	*value = e.v[e.n - 1];
	return 1;
}
