/* SPDX-License-Identifier: Apache-2.0 */
/* The extension, in one picture:
 *
 *     init.c      the module Weft: which parts this Ruby allows, and why not the others; start, stop
 *     slot.c      one struct for each Ruby thread, from a pool: nothing is allocated in Ruby's callbacks
 *     gvl.c       waits for the GVL and who held it, from Ruby's thread events
 *     gc.c        garbage collection
 *     alloc.c     one of many objects that are made
 *     request.c   requests and jobs as polls, spans
 *     frames.c    which methods run, in stacks among native frames; interpreter.c: which of these are the interpreter
 *
 * Contexts. RUBY: with the GVL, where Ruby code may run. EVENT: in a callback of Ruby's scheduler, with its lock and
 * perhaps without the GVL: no Ruby function but rb_internal_thread_specific_*, no memory, no lock. */
#ifndef WEFT_RUBY_BINDING_H
#define WEFT_RUBY_BINDING_H

#include <stdbool.h>
#include <stdint.h>

#include <ruby/debug.h>
#include <ruby/ruby.h>
#include <ruby/thread.h>

#include <weft/calls.h>
#include <weft/recorder.h>
#include <weft/segment.h>

/* The recorder's functions: those of `weft run`, or of the library that this is linked to. */
extern const struct weft_calls *weft__rb;

extern uint32_t weft__rb_runtime; /* "ruby" */
extern uint32_t weft__rb_forks;   /* how many forks this process is away from the one that loaded the extension */

/* A part that Ruby, its version or its settings do not allow: noted, and shown by the report. RUBY. */
void weft__rb_not_measured(const char *part, const char *why);

/* A Ruby thread. */
struct weft__rb_slot {
	uint32_t used;
	uint64_t number;  /* of weft_wait_self, of the thread of the system that runs it; 0: not known yet */
	uint64_t ready;   /* tick since which it waits for the GVL, while nobody else sees that; 0: it does not */
	uint32_t pending; /* 1: it waits for the GVL, and everybody sees it */
	uint32_t running; /* 1: it has the GVL */
	uint32_t begun;   /* 1: it runs Ruby code, and has frames */
};

/* The slot of the calling thread, NULL when it has none: for signal handlers. */
extern __thread struct weft__rb_slot *weft__rb_self __attribute__((tls_model("initial-exec")));

/* EVENT. A slot from the pool, or NULL; and back to it. */
struct weft__rb_slot *weft__rb_slot_take(void);
void weft__rb_slot_give(struct weft__rb_slot *slot);
/* In the child of a fork: only the calling thread is left. */
void weft__rb_slots_forked(void);
/* Threads for which there was no slot. */
uint64_t weft__rb_slots_missed(void);

/* RUBY. Hooks in, once; says itself what is not measured. */
void weft__rb_gvl_init(void);
/* RUBY. The calling thread has the GVL, and recording has begun. */
void weft__rb_gvl_started(void);
void weft__rb_gvl_forked(void);
bool weft__rb_gvl_on(void);

/* RUBY. The same for garbage collection; and, anywhere: whether it is under way. */
void weft__rb_gc_init(void);
void weft__rb_gc_forked(void);
int weft__rb_in_gc(void);

/* RUBY. One of many objects, if that is asked for. */
void weft__rb_alloc_init(void);

/* RUBY. Methods for requests, jobs and spans. */
void weft__rb_request_init(VALUE native);

/* RUBY. Frames of Ruby in stacks. Then: names those that have none yet. */
void weft__rb_frames_init(VALUE native);
void weft__rb_frames_name(void);
void weft__rb_frames_forked(void);

/* What the function at an address is: any, the one that runs Ruby code, the loop over instructions inside it, one of
 * this library. */
enum weft__rb_interprets { WEFT__RB_NATIVE, WEFT__RB_EXEC, WEFT__RB_CORE, WEFT__RB_OWN };
enum weft__rb_interprets weft__rb_interprets(uint64_t address);
/* RUBY. Finds these out, with the module that has look_by_method. */
VALUE weft__rb_calibrate(VALUE native);
void weft__rb_interpreter_init(VALUE native);

#endif
