/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of event.h, span.h and wait.h as real functions, for other languages. HOT. */
#define WEFT_EMIT_DEFINE
#include "weft/event.h"
#include "weft/span.h"
#include "weft/wait.h"
