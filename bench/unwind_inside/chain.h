/* SPDX-License-Identifier: Apache-2.0 */
/* Thirty functions that call one another, without and with frame pointers; the innermost calls back. */
#ifndef WEFT_BENCH_CHAIN_H
#define WEFT_BENCH_CHAIN_H

#define CHAIN_DEPTH 30

unsigned long chain_plain(void (*innermost)(void));
unsigned long chain_framed(void (*innermost)(void));

#endif
