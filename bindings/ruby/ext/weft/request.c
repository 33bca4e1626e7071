/* SPDX-License-Identifier: Apache-2.0 */
/* Requests and jobs as polls of the thread that handles them, and the span that a thread works for. RUBY. */
#include "binding.h"

#include <stdio.h>

static uint64_t next_task, next_worker;

/* The thread becomes a worker with its first request, and stays one. */
static void be_worker(void)
{
	static __thread bool is_one __attribute__((tls_model("initial-exec")));
	static __thread uint32_t process __attribute__((tls_model("initial-exec")));

	if (is_one && process == weft__rb_forks)
		return;
	is_one = true;
	process = weft__rb_forks;
	weft__rb->worker_enter(weft__rb_runtime, (uint32_t)__atomic_fetch_add(&next_worker, 1, __ATOMIC_RELAXED), NULL);
}

/* Weft::Native.location(name, file, line): its number. */
static VALUE native_location(VALUE self, VALUE name, VALUE file, VALUE line)
{
	return UINT2NUM(weft__rb->location(StringValueCStr(name), StringValueCStr(file), NUM2UINT(line)));
}

static VALUE native_endpoint(VALUE self, VALUE name)
{
	return UINT2NUM(weft__rb->endpoint(StringValueCStr(name)));
}

/* Weft::Native.enter(location): the task. */
static VALUE native_enter(VALUE self, VALUE location)
{
	uint64_t task = __atomic_add_fetch(&next_task, 1, __ATOMIC_RELAXED);

	if (!weft__rb->recording())
		return Qnil;
	be_worker();
	weft__rb->task_spawn(task, NUM2UINT(location));
	weft__rb->poll_begin(task, WEFT_DEPTH_UNKNOWN);
	return ULL2NUM(task);
}

static VALUE native_leave(VALUE self, VALUE task)
{
	if (NIL_P(task))
		return Qnil;
	weft__rb->poll_end();
	weft__rb->task_end(NUM2ULL(task));
	return Qnil;
}

/* Eight bytes in network order. */
static uint64_t word_at(VALUE string, long at)
{
	const uint8_t *bytes = (const uint8_t *)RSTRING_PTR(string) + at;
	uint64_t word = 0;

	for (int i = 0; i < 8; i++)
		word = word << 8 | bytes[i];
	return word;
}

/* Weft::Native.span(trace id of 16 bytes, span id of 8, sampled): the thread works for it from here on. An empty trace
 * id: for none. The endpoint stays; the first span of a request is its root. */
static VALUE native_span(VALUE self, VALUE trace, VALUE span, VALUE sampled)
{
	struct weft_context context;

	weft__rb->context_get(&context);
	if (RSTRING_LEN(trace) != 16 || RSTRING_LEN(span) != 8) {
		context.trace_hi = context.trace_lo = context.span = context.root = 0;
		context.flags = 0;
	} else {
		uint64_t hi = word_at(trace, 0), lo = word_at(trace, 8);

		if (context.trace_hi != hi || context.trace_lo != lo || !context.root)
			context.root = word_at(span, 0);
		context.trace_hi = hi;
		context.trace_lo = lo;
		context.span = word_at(span, 0);
		context.flags = RTEST(sampled) ? 1 : 0;
	}
	weft__rb->context_set(&context);
	return Qnil;
}

/* Weft::Native.for_endpoint(id of endpoint): and 0 for none. The one before. */
static VALUE native_for_endpoint(VALUE self, VALUE endpoint)
{
	struct weft_context context;
	uint32_t before;

	weft__rb->context_get(&context);
	before = context.endpoint;
	context.endpoint = NUM2UINT(endpoint);
	weft__rb->context_set(&context);
	return UINT2NUM(before);
}

/* Weft::Native.heap(class, objects, bytes): what lives of a class now. */
static VALUE native_heap(VALUE self, VALUE name, VALUE objects, VALUE bytes)
{
	static const struct weft_field fields[] = {
		{"class", WEFT_TYPE_STRING, NULL}, {"objects", WEFT_TYPE_U64, "1"}, {"bytes", WEFT_TYPE_U64, "By"}};
	uint64_t values[] = {weft__rb->string(StringValueCStr(name)), NUM2ULL(objects), NUM2ULL(bytes)};

	weft__rb->event(weft__rb->event_define("ruby_heap", fields, 3, NULL), values, 3);
	return Qnil;
}

void weft__rb_request_init(VALUE native)
{
	rb_define_singleton_method(native, "heap", native_heap, 3);
	rb_define_singleton_method(native, "location", native_location, 3);
	rb_define_singleton_method(native, "endpoint", native_endpoint, 1);
	rb_define_singleton_method(native, "enter", native_enter, 1);
	rb_define_singleton_method(native, "leave", native_leave, 1);
	rb_define_singleton_method(native, "span", native_span, 3);
	rb_define_singleton_method(native, "for_endpoint", native_for_endpoint, 1);
}
