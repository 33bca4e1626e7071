/* SPDX-License-Identifier: Apache-2.0 */
/* getrandom, which wasi-libc does not have, by what it has. */
#ifndef WEFT_SHIM_RANDOM_H
#define WEFT_SHIM_RANDOM_H
#include <sys/types.h>
#include <unistd.h>

#define GRND_NONBLOCK 1
static inline ssize_t getrandom(void *to, size_t n, unsigned flags)
{
	(void)flags;
	return getentropy(to, n) == 0 ? (ssize_t)n : -1;
}
#endif
