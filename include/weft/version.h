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
