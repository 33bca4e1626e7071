/* SPDX-License-Identifier: Apache-2.0 */
/* Version of the library. The segment format has a version of its own (docs/FORMAT.md). */
#ifndef WEFT_VERSION_H
#define WEFT_VERSION_H

#define WEFT_VERSION_MAJOR 0
#define WEFT_VERSION_MINOR 1
#define WEFT_VERSION_PATCH 0
#define WEFT_VERSION_STRING "0.1.0"

#if defined(__GNUC__)
#define WEFT_API __attribute__((visibility("default")))
#else
#define WEFT_API
#endif

/* The version of the layouts that inline functions rely on: struct weft_gate, weft_ring, weft_waits and
 * weft_context, the tables of locks, and the slow paths behind them. It is part of the names of these variables in
 * the library. So a program that was compiled with other layouts than its library has does not link, or does not
 * start: the loader names weft_gate_v and the number. It goes up with every change of them;
 * test/unit/record/layout_test.c knows the present ones. */
#define WEFT_LAYOUT 2
#define WEFT_LAYOUT_LABEL(name, version) __asm__(#name "_v" #version)
#define WEFT_LAYOUT_PASTE(name, version) WEFT_LAYOUT_LABEL(name, version)
#define WEFT_LAYOUT_OF(name) WEFT_LAYOUT_PASTE(name, WEFT_LAYOUT)

#ifdef __cplusplus
extern "C" {
#endif

/* The version of the library that is linked, as "major.minor.patch". Never NULL, static storage.
 * Any thread; async-signal-safe. */
WEFT_API const char *weft_version(void);

#ifdef __cplusplus
}
#endif
#endif
