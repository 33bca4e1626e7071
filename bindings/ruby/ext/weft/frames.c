/* SPDX-License-Identifier: Apache-2.0 */
/* Ruby frames in stacks. A stack is taken in a signal handler, or where a long wait ends, on a thread that has the GVL:
 * rb_profile_frames gives which methods run, as objects of Ruby's, and lines. Names are looked up later, in a postponed
 * job. Until then the objects are kept alive, and after it, too: they stand for their names from then on. Both lists
 * are bounded.
 *
 * A thread that gave the GVL back, and blocks in a call or computes in C, has the same frames until it has the GVL
 * again: they can be read then, too, as long as Ruby moves no objects. It does so only where it is asked to
 * (GC.compact).
 *
 * One thread at a time is here: others, and handlers that interrupt it, go without. */
#include "binding.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(HAVE_RB_POSTPONED_JOB_PREREGISTER) && defined(HAVE_RB_INTERNAL_THREAD_SPECIFIC_GET)

#define DEPTH 512
#define PLACES 65536 /* of the hash table; a power of two */
#define PLACES_MOST 16384
#define LINES_MOST 8192
#define NO_LINE (-1)

/* A method at a line. */
struct place {
	VALUE frame;
	int line;
	uint32_t location; /* 0: not named yet */
};

static struct place places[PLACES_MOST];
static uint32_t n_places, n_named;
static uint32_t by_hash[PLACES]; /* number + 1 */
static uint32_t busy;
static bool on;
static uint32_t moves; /* 1: Ruby moves objects, or may */
static VALUE frames[DEPTH];
static int lines[DEPTH];
static uint64_t native[1024];
static uint32_t full, in_gc; /* locations of what stands for other things */
static VALUE pending_keeper, named_keeper;
static rb_postponed_job_handle_t name_job;

static uint32_t hash(VALUE frame, int line)
{
	uint64_t word = ((uint64_t)frame >> 3 ^ (uint64_t)(uint32_t)line << 40) * UINT64_C(0x9e3779b97f4a7c15);

	return (uint32_t)(word >> 40) % PLACES;
}

/* Where the place is in the hash table, or belongs. */
static uint32_t find(VALUE frame, int line)
{
	uint32_t i = hash(frame, line);

	while (by_hash[i] && (places[by_hash[i] - 1].frame != frame || places[by_hash[i] - 1].line != line))
		i = (i + 1) % PLACES;
	return i;
}

/* Definitions are few in a recording, and others need some, too: when there are many places, new ones are methods
 * without lines. */
static uint64_t address_of(VALUE frame, int line, bool *fresh)
{
	uint32_t i = find(frame, line), number;

	if (!by_hash[i] && line > 0 && n_places >= LINES_MOST)
		i = find(frame, line = NO_LINE);
	if (!by_hash[i] && n_places == PLACES_MOST)
		return weft_frame_of(full);
	if (!by_hash[i]) {
		places[n_places] = (struct place){.frame = frame, .line = line};
		by_hash[i] = n_places + 1;
		__atomic_store_n(&n_places, n_places + 1, __ATOMIC_RELEASE);
		*fresh = true;
	}
	number = by_hash[i] - 1;
	return places[number].location ? weft_frame_of(places[number].location) : weft_frame_later(number);
}

/* What is written to a stack, as far as there is room. */
struct out {
	uint64_t *to;
	uint32_t n, max;
	uint32_t *flags;
	bool fresh;
};

static void put(struct out *out, uint64_t address)
{
	if (out->n < out->max)
		out->to[out->n++] = address;
	else
		*out->flags |= WEFT_STACK_CUT;
}

/* Native frames [from, to), without those of the loop over instructions. */
static void put_native(struct out *out, uint32_t from, uint32_t to)
{
	for (; from < to; from++)
		if (weft__rb_interprets(native[from]) == WEFT__RB_NATIVE)
			put(out, native[from]);
}

/* Ruby frames from `from` on: functions in C that are called from there, then the methods of one run of the
 * interpreter. Answers where the next run is. */
static int put_run(struct out *out, int from, int n)
{
	for (; from < n && lines[from] == 0; from++)
		put(out, address_of(frames[from], 0, &out->fresh));
	for (; from < n && lines[from] != 0; from++)
		put(out, address_of(frames[from], lines[from], &out->fresh));
	return from;
}

static uint32_t count_runs(int n)
{
	uint32_t runs = 0;

	for (int i = 0; i < n; i++)
		runs += lines[i] != 0 && (i == 0 || lines[i - 1] == 0);
	return runs;
}

/* Each run of the interpreter has one native frame. When there are as many of both, each is put in its place. Some
 * calls back into Ruby have no frame of a C function, as a hash that asks an object for its own: then all Ruby frames
 * are put where the first run is, and native ones in between are left out. */
static void merge(struct out *out, uint32_t n_native, int n_ruby)
{
	uint32_t runs = 0, first = n_native, last = 0, i, from = 0;
	int ruby = 0;

	for (i = 0; i < n_native; i++)
		if (weft__rb_interprets(native[i]) == WEFT__RB_EXEC) {
			first = runs++ ? first : i;
			last = i;
		}
	if (runs && runs == count_runs(n_ruby)) {
		for (i = 0; i < n_native; i++)
			if (weft__rb_interprets(native[i]) == WEFT__RB_EXEC) {
				put_native(out, from, i);
				ruby = put_run(out, ruby, n_ruby);
				from = i + 1;
			}
	} else {
		put_native(out, 0, first);
		while (ruby < n_ruby)
			ruby = put_run(out, ruby, n_ruby);
		from = runs ? last + 1 : n_native;
	}
	while (ruby < n_ruby)
		ruby = put_run(out, ruby, n_ruby);
	put_native(out, from, n_native);
}

/* Objects may be moving: which methods run is not asked. */
static void put_gc(struct out *out, uint32_t n_native)
{
	uint32_t first = 0;

	while (first < n_native && weft__rb_interprets(native[first]) != WEFT__RB_EXEC)
		first++;
	put_native(out, 0, first);
	put(out, weft_frame_of(in_gc));
	put_native(out, first, n_native);
}

/* The functions of this library that a wait ends in are not what waited. */
static uint32_t without_own(uint64_t *stack, uint32_t n)
{
	uint32_t own = 0;

	while (own < n && weft__rb_interprets(stack[own]) == WEFT__RB_OWN)
		own++;
	memmove(stack, stack + own, (n - own) * sizeof(*stack));
	return n - own;
}

static uint32_t mix(uint64_t *stack, uint32_t n, uint32_t max, uint32_t *flags, void *unused)
{
	struct out out = {.to = stack, .max = max, .flags = flags};
	struct weft__rb_slot *slot = weft__rb_self;
	int n_ruby;

	if (!slot || !slot->begun || (!slot->running && __atomic_load_n(&moves, __ATOMIC_RELAXED)) ||
	    n > sizeof(native) / sizeof(native[0]) || __atomic_exchange_n(&busy, 1, __ATOMIC_ACQUIRE))
		return without_own(stack, n);
	memcpy(native, stack, n * sizeof(*native));
	if (slot->running && weft__rb_in_gc()) {
		put_gc(&out, n);
	} else {
		n_ruby = rb_profile_frames(0, DEPTH, frames, lines);
		if (n_ruby == DEPTH)
			*flags |= WEFT_STACK_CUT;
		merge(&out, n, n_ruby);
	}
	__atomic_store_n(&busy, 0, __ATOMIC_RELEASE);
	if (out.fresh)
		rb_postponed_job_trigger(name_job);
	return out.n;
}

static const char *text_of(VALUE string)
{
	return RB_TYPE_P(string, T_STRING) ? StringValueCStr(string) : "";
}

static VALUE name_one(VALUE number)
{
	struct place *place = &places[NUM2UINT(number)];
	VALUE label = rb_profile_frame_full_label(place->frame);
	VALUE path = rb_profile_frame_absolute_path(place->frame);

	if (place->line == 0)
		path = Qnil; /* a C function: "<cfunc>" */
	else if (NIL_P(path))
		path = rb_profile_frame_path(place->frame);
	place->location =
		weft__rb->location(text_of(label), text_of(path), place->line > 0 ? (uint32_t)place->line : 0);
	RB_GC_GUARD(label);
	RB_GC_GUARD(path);
	return Qnil;
}

void weft__rb_frames_name(void)
{
	uint32_t n = __atomic_load_n(&n_places, __ATOMIC_ACQUIRE);

	if (!on)
		return;
	for (uint32_t i = n_named; i < n; i++) {
		int failed = 0;
		VALUE error = rb_errinfo();

		rb_protect(name_one, UINT2NUM(i), &failed);
		if (failed)
			rb_set_errinfo(error);
		if (!places[i].location) /* no more room for names */
			places[i].location = full;
		weft__rb->frame_name(i, places[i].location);
		RB_OBJ_WRITTEN(named_keeper, Qundef, places[i].frame);
		__atomic_store_n(&n_named, i + 1, __ATOMIC_RELEASE);
	}
}

void weft__rb_frames_forked(void)
{
	busy = 0; /* of a thread that the child does not have */
}

static void on_job(void *unused)
{
	weft__rb_frames_name();
}

/* Those that are not named yet are few, and marked in each collection. The others are marked as any old object is. Both
 * stay where they are: the table has their addresses. */
static void mark_pending(void *unused)
{
	for (uint32_t i = n_named; i < __atomic_load_n(&n_places, __ATOMIC_ACQUIRE); i++)
		rb_gc_mark(places[i].frame);
}

static void mark_named(void *unused)
{
	for (uint32_t i = 0; i < n_named; i++)
		rb_gc_mark(places[i].frame);
}

static const rb_data_type_t pending_type = {.wrap_struct_name = "Weft::Pending", .function = {.dmark = mark_pending}};
static const rb_data_type_t named_type = {
	.wrap_struct_name = "Weft::Named", .function = {.dmark = mark_named}, .flags = RUBY_TYPED_WB_PROTECTED};

/* Weft::Native.objects_move: from here on. */
static VALUE native_objects_move(VALUE self)
{
	__atomic_store_n(&moves, 1, __ATOMIC_RELAXED);
	return Qnil;
}

/* rb_profile_frames in a signal handler reads what Ruby is just changing. These versions bear it. */
static bool is_known(void)
{
	const char *wanted = getenv("WEFT_RUBY_FRAMES");
	VALUE version = rb_const_get(rb_cObject, rb_intern("RUBY_VERSION"));
	int major = 0, minor = 0, teeny = 0;

	if (wanted && wanted[0])
		return wanted[0] != '0';
	sscanf(StringValueCStr(version), "%d.%d.%d", &major, &minor, &teeny);
	return major == 3 && ((minor == 3 && teeny >= 4) || minor == 4);
}

void weft__rb_frames_init(VALUE native_module)
{
	int failed = 0;

	if (!weft__rb_gvl_on()) {
		weft__rb_not_measured("Ruby frames", "they take the thread events");
		return;
	}
	if (!is_known()) {
		weft__rb_not_measured("Ruby frames", "weft does not know this Ruby (3.3.4 to 3.4); "
						     "WEFT_RUBY_FRAMES=1 takes the risk");
		return;
	}

	pending_keeper = TypedData_Wrap_Struct(rb_cObject, &pending_type, places);
	named_keeper = TypedData_Wrap_Struct(rb_cObject, &named_type, places);
	rb_gc_register_mark_object(pending_keeper);
	rb_gc_register_mark_object(named_keeper);
	rb_define_singleton_method(native_module, "objects_move", native_objects_move, 0);
	full = weft__rb->location("(more Ruby frames than weft keeps)", "", 0);
	in_gc = weft__rb->location("(garbage collection)", "", 0);
	name_job = rb_postponed_job_preregister(0, on_job, NULL);
	if (name_job == POSTPONED_JOB_HANDLE_INVALID) {
		weft__rb_not_measured("Ruby frames", "Ruby has no postponed job left");
		return;
	}
	rb_protect(weft__rb_calibrate, native_module, &failed);
	if (failed)
		rb_set_errinfo(Qnil);
	on = true;
	if (weft__rb->frames_set("ruby", mix, NULL) < 0) {
		on = false;
		weft__rb_not_measured("Ruby frames", "another interpreter has set its own");
	}
}

#else

void weft__rb_frames_name(void)
{
}

void weft__rb_frames_forked(void)
{
}

void weft__rb_frames_init(VALUE native_module)
{
	weft__rb_not_measured("Ruby frames", "this Ruby has not what it takes: 3.3 has");
}

#endif
