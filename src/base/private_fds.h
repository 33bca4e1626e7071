/* SPDX-License-Identifier: Apache-2.0 */
/* Threads of ours with a table of files of their own. As long as nobody shares a program's table the kernel does not
 * count who uses a file, which it else does in each call (50 ns of 200 for a short read); a second thread that is
 * ours must not take that away.
 *
 * A number means nothing on the other side. So who opens a file on such a thread uses and closes it there: what has
 * to do with files that stay open is asked of that thread (collector.h), and files that a caller may come upon all
 * the same are looked at first (own.h). No streams of stdio: a child of fork that exits puts back what it has of
 * them unread, by the number. And nothing of the program may run there: this is for who knows that it does not,
 * which is the preload library. */
#ifndef WEFT_BASE_PRIVATE_FDS_H
#define WEFT_BASE_PRIVATE_FDS_H

#include <stdint.h>

extern int weft__private_fds_wanted; /* set before the recorder is opened */

/* Whether the calling thread has a table that is not the program's. */
extern __thread int weft__private_fds __attribute__((tls_model("initial-exec")));

/* A table of its own for the calling thread, with `keep` in it (-1: nothing) by the same number. The standard three
 * lead nowhere, so that who waits for the program to close them waits for nobody else. Root and working directory
 * stay what they are now, wherever the program goes. 0 or -errno: all is as before. */
int weft__private_fds_begin(int keep);
/* Closes all of it, right before the thread ends: who joins it does not wait for the kernel to do so. Nothing if it
 * has none. */
void weft__private_fds_end(void);

extern uint32_t weft__ids_strayed; /* the program's only thread has changed its user or its groups */
/* follow.c. The calling thread takes those of the program's first thread, as far as it may. */
void weft__ids_follow(void);

#endif
