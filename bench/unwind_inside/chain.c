/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind_inside/chain.h"

#define PLAIN __attribute__((noinline, noclone, optimize("O2", "omit-frame-pointer")))
#define FRAMED __attribute__((noinline, noclone, optimize("O2", "no-omit-frame-pointer")))

/* Frames of different sizes, some with saved registers, as real code has. */
#define LINK(kind, attr, n, next, room)                                                                                \
	attr static unsigned long kind##_##n(void (*innermost)(void), unsigned long a, unsigned long b)                \
	{                                                                                                              \
		volatile unsigned char space[room];                                                                    \
		unsigned long x, y;                                                                                    \
		space[a % (room)] = (unsigned char)b;                                                                  \
		x = kind##_##next(innermost, a + n, b ^ n);                                                            \
		y = a * b + x;                                                                                         \
		return y + space[b % (room)] + a;                                                                      \
	}

#define CHAIN(kind, attr)                                                                                              \
	attr static unsigned long kind##_30(void (*innermost)(void), unsigned long a, unsigned long b)                 \
	{                                                                                                              \
		innermost();                                                                                           \
		return a + b;                                                                                          \
	}                                                                                                              \
	LINK(kind, attr, 29, 30, 8)                                                                                    \
	LINK(kind, attr, 28, 29, 24)                                                                                   \
	LINK(kind, attr, 27, 28, 100)                                                                                  \
	LINK(kind, attr, 26, 27, 8)                                                                                    \
	LINK(kind, attr, 25, 26, 300)                                                                                  \
	LINK(kind, attr, 24, 25, 16)                                                                                   \
	LINK(kind, attr, 23, 24, 40)                                                                                   \
	LINK(kind, attr, 22, 23, 8)                                                                                    \
	LINK(kind, attr, 21, 22, 200)                                                                                  \
	LINK(kind, attr, 20, 21, 64)                                                                                   \
	LINK(kind, attr, 19, 20, 8)                                                                                    \
	LINK(kind, attr, 18, 19, 24)                                                                                   \
	LINK(kind, attr, 17, 18, 120)                                                                                  \
	LINK(kind, attr, 16, 17, 8)                                                                                    \
	LINK(kind, attr, 15, 16, 500)                                                                                  \
	LINK(kind, attr, 14, 15, 16)                                                                                   \
	LINK(kind, attr, 13, 14, 40)                                                                                   \
	LINK(kind, attr, 12, 13, 8)                                                                                    \
	LINK(kind, attr, 11, 12, 220)                                                                                  \
	LINK(kind, attr, 10, 11, 64)                                                                                   \
	LINK(kind, attr, 9, 10, 8)                                                                                     \
	LINK(kind, attr, 8, 9, 24)                                                                                     \
	LINK(kind, attr, 7, 8, 100)                                                                                    \
	LINK(kind, attr, 6, 7, 8)                                                                                      \
	LINK(kind, attr, 5, 6, 300)                                                                                    \
	LINK(kind, attr, 4, 5, 16)                                                                                     \
	LINK(kind, attr, 3, 4, 40)                                                                                     \
	LINK(kind, attr, 2, 3, 8)                                                                                      \
	LINK(kind, attr, 1, 2, 200)                                                                                    \
	attr unsigned long chain_##kind(void (*innermost)(void))                                                       \
	{                                                                                                              \
		return kind##_1(innermost, 1, 2);                                                                      \
	}

CHAIN(plain, PLAIN)
CHAIN(framed, FRAMED)
