/* SPDX-License-Identifier: Apache-2.0 */
/* The program's last thread. The C library ends the process, by exit(0), with the last thread that ends; with
 * threads of weft beside it that is never the program's. So who ends last does it here. Where the C library is
 * passed by (a bare exit of the thread), the kernel ends the process with its last thread, whose code is the status:
 * then the collector ends the process, with that. */
#ifndef WEFT_RECORD_LAST_H
#define WEFT_RECORD_LAST_H

#include <pthread.h>
#include <stdint.h>

/* From the destructor of `key` of a thread that ends. As long as more destructors may follow, sets the key to
 * `value` again and returns: the end comes after those of the program. Returns unless the thread is the last one;
 * then the process exits. CALLER. */
void weft__last_thread_ends(uint32_t *rounds, pthread_key_t key, const void *value);
void weft__last_forked(void);
/* A thread is about to end by the bare call. Known below `weft run`; elsewhere the code of the first thread is
 * taken. HOT. */
void weft__last_bare_exit(int code);

/* COLLECTOR. Whether the program has no thread any more. */
int weft__last_is_gone(uint64_t now_ns);
/* When to look next. */
uint64_t weft__last_due(void);
/* When it has none. The process ends, unless the C library is to do so with the calling thread. */
void weft__last_end(void);

#endif
