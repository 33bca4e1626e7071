/* SPDX-License-Identifier: Apache-2.0 */
#include "binding.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

const struct weft_calls *weft__rb;

uint32_t weft__rb_runtime, weft__rb_forks;

static struct weft_recorder *recorder;
static bool of_run, hooked;
static VALUE native_module;
static char missing[1024];

void weft__rb_not_measured(const char *part, const char *why)
{
	size_t n = strlen(missing);

	snprintf(missing + n, sizeof(missing) - n, "%s%s: %s", n ? "; " : "", part, why);
	weft__rb->runtime_not_measured(weft__rb_runtime, missing, NULL);
}

/* Under weft run, the recorder of the library that it preloads. One that is older than this has not all that is
 * needed. */
static const struct weft_calls *find_calls(void)
{
	const struct weft_calls *(*run_calls)(void) = NULL;
	const struct weft_calls *found;
	void *symbol = dlsym(RTLD_DEFAULT, "weft_run_calls");

	memcpy(&run_calls, &symbol, sizeof(symbol));
	found = run_calls ? run_calls() : NULL;
	of_run = found && found->size >= sizeof(*found);
	return of_run ? found : weft_calls();
}

static void on_forked(void)
{
	weft__rb_forks++;
	weft__rb_gvl_forked();
	weft__rb_gc_forked();
	weft__rb_frames_forked();
}

/* Hooks in, once. */
static void hook(void)
{
	struct weft_error err;

	if (hooked)
		return;
	hooked = true;
	weft__rb_runtime = weft__rb->runtime_add(WEFT_OPTIONS(weft_runtime_opts, .name = "ruby"), &err);
	pthread_atfork(NULL, NULL, on_forked);
	weft__rb_gvl_init();
	weft__rb_gc_init();
	weft__rb_frames_init(native_module);
	weft__rb_alloc_init();
}

/* Weft::Native.start(dir or nil, name or nil): true when something records, "why not" otherwise. */
static VALUE native_start(VALUE self, VALUE dir, VALUE name)
{
	struct weft_recorder_opts opts = WEFT_OPTIONS_INIT(weft_recorder_opts);
	struct weft_error err = {0};
	int r;

	if (recorder)
		return Qtrue;
	if (of_run) {
		hook();
		return Qtrue;
	}
	opts.dir = NIL_P(dir) ? NULL : StringValueCStr(dir);
	opts.name = NIL_P(name) ? NULL : StringValueCStr(name);
	opts.on_fork = WEFT_FORK_RESTART;
	r = weft_recorder_open_env(&recorder, &opts, &err);
	if (r > 0)
		return rb_str_new_cstr("neither WEFT_DIR nor a directory is given");
	if (r == 0)
		r = weft_recorder_start(recorder, &err);
	if (r < 0) {
		weft_recorder_close(recorder, NULL);
		recorder = NULL;
		return rb_str_new_cstr(err.msg[0] ? err.msg : weft_strerror(r));
	}
	hook();
	weft__rb_gvl_started();
	return Qtrue;
}

static VALUE native_stop(VALUE self)
{
	struct weft_recorder *rec = recorder;
	struct weft_error err = {0};

	recorder = NULL;
	weft__rb_frames_name();
	return weft_recorder_close(rec, &err) < 0 ? rb_str_new_cstr(err.msg) : Qtrue;
}

static VALUE native_recording(VALUE self)
{
	return weft__rb->recording() ? Qtrue : Qfalse;
}

/* What is not measured, and why; "" when all is. */
static VALUE native_missing(VALUE self)
{
	return rb_str_new_cstr(missing);
}

static VALUE native_of_run(VALUE self)
{
	return of_run ? Qtrue : Qfalse;
}

__attribute__((visibility("default"))) void Init_weft(void)
{
	VALUE native = native_module = rb_define_module_under(rb_define_module("Weft"), "Native");

	weft__rb = find_calls();
	weft__rb_interpreter_init(native);
	weft__rb_request_init(native);
	rb_define_singleton_method(native, "start", native_start, 2);
	rb_define_singleton_method(native, "stop", native_stop, 0);
	rb_define_singleton_method(native, "recording?", native_recording, 0);
	rb_define_singleton_method(native, "missing", native_missing, 0);
	rb_define_singleton_method(native, "of_run?", native_of_run, 0);
}
