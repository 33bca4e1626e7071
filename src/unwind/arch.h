/* SPDX-License-Identifier: Apache-2.0 */
/* What the unwinder has to know about the machine, one file each. Any context. */
#ifndef WEFT_UNWIND_ARCH_H
#define WEFT_UNWIND_ARCH_H

#if defined(__x86_64__)
#include "unwind/arch_x86_64.h"
#elif defined(__aarch64__)
#include "unwind/arch_aarch64.h"
#else
#error "weft unwinds on x86-64 and aarch64; another machine needs its own unwind/arch_NAME.h"
#endif

#endif
