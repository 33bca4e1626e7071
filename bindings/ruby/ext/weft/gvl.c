/* SPDX-License-Identifier: Apache-2.0 */
/* Waits for the GVL. Ruby says when a thread would run if it had the GVL (READY), when it has got it (RESUMED) and when
 * it gives it back (SUSPENDED). RESUMED and SUSPENDED come on the thread that they are about, READY also on another: on
 * the one that wakes a sleeping thread. What is in the callbacks is bounded and takes no lock: libweft's functions for
 * waits may be called from signal handlers.
 *
 * Each Ractor has a GVL of its own, which Ruby's events do not name. So there is one here: lengths of waits are right
 * for all threads, and holders are those of one Ractor as long as there is one. */
#include "binding.h"

#ifdef HAVE_RB_INTERNAL_THREAD_SPECIFIC_GET

static rb_internal_thread_specific_key_t key;
static uint32_t name;   /* string id */
static uint64_t object; /* of which the address stands for the GVL */

#define GVL ((uint64_t)(uintptr_t)&object)

static struct weft__rb_slot *slot_of(VALUE thread)
{
	struct weft__rb_slot *slot = rb_internal_thread_specific_get(thread, key);

	if (!slot) {
		slot = weft__rb_slot_take();
		if (slot)
			rb_internal_thread_specific_set(thread, key, slot);
	}
	return slot;
}

/* Of a new thread its creator says it, before there is a thread of the system: the wait is reported when it is over. */
static void on_ready(struct weft__rb_slot *slot)
{
	if (slot->number) {
		slot->pending = 1;
		weft__rb->wait_begin_of(slot->number, WEFT_WAIT_RUNTIME, name, GVL);
		return;
	}
	slot->ready = weft__rb->wait_since();
	if (slot->ready)
		weft__rb->lock_watch(GVL);
}

/* A wait that only this thread knows of. */
static void end_first(struct weft__rb_slot *slot)
{
	weft__rb->waited(WEFT_WAIT_RUNTIME, name, GVL, 0, slot->ready);
	weft__rb->lock_unwatch(GVL);
	slot->ready = 0;
}

static void on_resumed(struct weft__rb_slot *slot)
{
	uint64_t number = weft__rb_self == slot && slot->number ? slot->number : weft__rb->wait_self();

	weft__rb_self = slot;
	slot->running = 1;
	if (slot->pending)
		weft__rb->wait_end_of(slot->number, WEFT_WAIT_RUNTIME, GVL);
	if (slot->ready)
		end_first(slot);
	slot->pending = 0;
	slot->number = number;
	weft__rb->lock_held(GVL);
}

static void on_suspended(struct weft__rb_slot *slot)
{
	slot->running = 0;
	weft__rb->lock_released(GVL);
}

static void on_event(rb_event_flag_t event, const rb_internal_thread_event_data_t *data, void *unused)
{
	struct weft__rb_slot *slot = slot_of(data->thread);

	if (!slot)
		return;
	switch (event) {
	case RUBY_INTERNAL_THREAD_EVENT_READY:
		on_ready(slot);
		break;
	case RUBY_INTERNAL_THREAD_EVENT_RESUMED:
		on_resumed(slot);
		break;
	case RUBY_INTERNAL_THREAD_EVENT_SUSPENDED:
		on_suspended(slot);
		break;
	case RUBY_INTERNAL_THREAD_EVENT_EXITED:
		rb_internal_thread_specific_set(data->thread, key, NULL);
		weft__rb_slot_give(slot);
		break;
	default:
		break;
	}
}

/* Before its first frame, and behind its last, a thread has none that could be asked for. */
static void on_life(rb_event_flag_t event, VALUE data, VALUE self, ID id, VALUE class)
{
	struct weft__rb_slot *slot = slot_of(rb_thread_current());

	if (slot)
		slot->begun = event == RUBY_EVENT_THREAD_BEGIN;
}

static void on_end(VALUE unused)
{
	if (weft__rb_self)
		weft__rb_self->begun = 0;
}

/* Threads that were there before. */
static void find_threads(void)
{
	VALUE threads = rb_funcall(rb_cThread, rb_intern("list"), 0);

	for (long i = 0; i < RARRAY_LEN(threads); i++) {
		VALUE thread = RARRAY_AREF(threads, i), trace = rb_funcall(thread, rb_intern("backtrace"), 0);
		struct weft__rb_slot *slot = RB_TYPE_P(trace, T_ARRAY) && RARRAY_LEN(trace) ? slot_of(thread) : NULL;

		if (slot)
			slot->begun = 1;
	}
}

/* With M:N threads a thread of the system runs one Ruby thread after another, and weft's threads are the system's. */
static bool is_mn(void)
{
	const char *mn = getenv("RUBY_MN_THREADS");

	return mn && atoi(mn) > 0;
}

static VALUE make_key(VALUE unused)
{
	key = rb_internal_thread_specific_key_create();
	return Qtrue;
}

void weft__rb_gvl_started(void)
{
	if (!name)
		return;
	if (!weft__rb_self)
		weft__rb_self = slot_of(rb_thread_current());
	if (!weft__rb_self)
		return;
	weft__rb_self->number = weft__rb->wait_self();
	weft__rb_self->running = 1;
	weft__rb->lock_held(GVL);
}

void weft__rb_gvl_init(void)
{
	int failed = 0;

	if (is_mn()) {
		weft__rb_not_measured("waits for the GVL",
				      "RUBY_MN_THREADS is set, and threads change their native thread");
		return;
	}
	rb_protect(make_key, Qnil, &failed);
	if (failed) {
		rb_set_errinfo(Qnil);
		weft__rb_not_measured("waits for the GVL",
				      "Ruby has no storage left for its threads, or has Ractors already");
		return;
	}
	name = weft__rb->string("GVL");
	if (!rb_internal_thread_add_event_hook(on_event,
					       RUBY_INTERNAL_THREAD_EVENT_READY | RUBY_INTERNAL_THREAD_EVENT_RESUMED |
						       RUBY_INTERNAL_THREAD_EVENT_SUSPENDED |
						       RUBY_INTERNAL_THREAD_EVENT_EXITED,
					       NULL)) {
		name = 0;
		weft__rb_not_measured("waits for the GVL", "Ruby refused the hook");
		return;
	}
	rb_add_event_hook(on_life, RUBY_EVENT_THREAD_BEGIN | RUBY_EVENT_THREAD_END, Qnil);
	rb_set_end_proc(on_end, Qnil);
	find_threads();
	weft__rb_gvl_started();
}

void weft__rb_gvl_forked(void)
{
	weft__rb_slots_forked();
}

bool weft__rb_gvl_on(void)
{
	return name != 0;
}

#else

void weft__rb_gvl_init(void)
{
	weft__rb_not_measured("waits for the GVL", "this Ruby does not report them by thread: 3.3 does");
}

void weft__rb_gvl_started(void)
{
}

void weft__rb_gvl_forked(void)
{
}

bool weft__rb_gvl_on(void)
{
	return false;
}

#endif
