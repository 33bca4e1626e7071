/* SPDX-License-Identifier: Apache-2.0 */
/* One of about N objects that Ruby makes, at random. Which one is next is drawn anew each time, so that nothing in the
 * program can be in step with it; the one that is recorded stands for all since the last. Off unless it is asked for
 * (WEFT_RUBY_ALLOC=N): Ruby calls the hook for each object. An object has its class here, and nothing that it will
 * hold; so bytes are not known. In the hook nothing may be allocated: rb_mod_name does not, and names that a class
 * gets later are those of later objects. */
#include "binding.h"

#include <math.h>
#include <stdlib.h>

static uint64_t every, left, drawn, state = UINT64_C(0x2545f4914f6cdd1d);
static uint32_t nameless, internal; /* string ids */

static uint64_t draw(void)
{
	double at_random;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	at_random = (double)(state >> 11) * 0x1p-53;
	return every > 1 ? 1 + (uint64_t)(log1p(-at_random) / log1p(-1.0 / (double)every)) : 1;
}

/* What is of the virtual machine itself has other things where objects have their class. */
static bool has_class(VALUE object)
{
	int type = RB_BUILTIN_TYPE(object);

	return type != T_IMEMO && type != T_NODE && type != T_ICLASS && type != T_MOVED && type != T_NONE &&
	       type != T_ZOMBIE;
}

static uint32_t name_of(VALUE object)
{
	VALUE class = has_class(object) ? RBASIC_CLASS(object) : 0, name;

	if (!class || RB_SPECIAL_CONST_P(class))
		return internal;
	name = rb_mod_name(rb_class_real(class));
	return RB_TYPE_P(name, T_STRING) ? weft__rb->string(RSTRING_PTR(name)) : nameless;
}

static void on_object(VALUE point, void *unused)
{
	if (--left)
		return;
	if (weft__rb->recording())
		weft__rb->alloc(name_of(rb_tracearg_object(rb_tracearg_from_tracepoint(point))), drawn, 0);
	left = drawn = draw();
}

void weft__rb_alloc_init(void)
{
	const char *text = getenv("WEFT_RUBY_ALLOC");
	VALUE point;

	every = text ? strtoull(text, NULL, 10) : 0;
	if (!every)
		return;
	state ^= weft__rb->now_ticks() | 1;
	left = drawn = draw();
	nameless = weft__rb->string("(class without a name)");
	internal = weft__rb->string("(Ruby's own)");
	point = rb_tracepoint_new(0, RUBY_INTERNAL_EVENT_NEWOBJ, on_object, NULL);
	rb_gc_register_mark_object(point);
	rb_tracepoint_enable(point);
}
