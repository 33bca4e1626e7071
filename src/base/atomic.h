/* SPDX-License-Identifier: Apache-2.0 */
/* Atomics with the memory order in the name, so that grep shows every ordering in use. HOT, COLLECTOR and CALLER. */
#ifndef WEFT_BASE_ATOMIC_H
#define WEFT_BASE_ATOMIC_H

#define load_relaxed(p) __atomic_load_n((p), __ATOMIC_RELAXED)
#define load_acquire(p) __atomic_load_n((p), __ATOMIC_ACQUIRE)
#define load_seq_cst(p) __atomic_load_n((p), __ATOMIC_SEQ_CST)
#define store_relaxed(p, v) __atomic_store_n((p), (v), __ATOMIC_RELAXED)
#define store_release(p, v) __atomic_store_n((p), (v), __ATOMIC_RELEASE)
#define store_seq_cst(p, v) __atomic_store_n((p), (v), __ATOMIC_SEQ_CST)
#define add_relaxed(p, v) __atomic_fetch_add((p), (v), __ATOMIC_RELAXED)
#define swap_seq_cst(p, v) __atomic_exchange_n((p), (v), __ATOMIC_SEQ_CST)
#define cas_acq_rel(p, expected, v)                                                                                    \
	__atomic_compare_exchange_n((p), (expected), (v), 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)
#define cas_relaxed(p, expected, v)                                                                                    \
	__atomic_compare_exchange_n((p), (expected), (v), 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)
#define fence_signal() __atomic_signal_fence(__ATOMIC_SEQ_CST)

#endif
