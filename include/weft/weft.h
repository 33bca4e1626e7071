/* SPDX-License-Identifier: Apache-2.0 */
/* All of weft's public API. */
#ifndef WEFT_WEFT_H
#define WEFT_WEFT_H

#include "calls.h"
#include "define.h"
#include "error.h"
#include "event.h"
#include "frame.h"
#include "hooks.h"
#include "kind.h"
#include "options.h"
#include "recorder.h"
#include "report.h"
#include "runtime.h"
#include "segment.h"
#include "span.h"
#include "version.h"
#include "wait.h"

#endif
