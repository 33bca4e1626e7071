/* SPDX-License-Identifier: Apache-2.0 */
/* Errors: every fallible call returns an int, zero or positive on success, and on failure a negative errno or one of
 * the negative WEFT_E codes below. Calls a person would want explained also take a struct weft_error. */
#ifndef WEFT_ERROR_H
#define WEFT_ERROR_H

#include "version.h"

#ifdef __cplusplus
extern "C" {
#endif

/* X(name, value, text). Values start far above errno, so that both fit one int. */
#define WEFT_ERROR_MAP(X)                                                                                              \
	X(WEFT_E_FORMAT, 4001, "not a weft segment")                                                                   \
	X(WEFT_E_VERSION, 4002, "segment version is newer than this reader")                                           \
	X(WEFT_E_DAMAGED, 4003, "segment is damaged")                                                                  \
	X(WEFT_E_OPTION, 4004, "option has a value that is not allowed")                                               \
	X(WEFT_E_STATE, 4005, "not possible in the recorder's present state")                                          \
	X(WEFT_E_LIMIT, 4006, "a configured limit is reached")                                                         \
	X(WEFT_E_CODEC, 4007, "compression failed")                                                                    \
	X(WEFT_E_BUSY, 4008, "in use by a living process")

enum weft_error_code {
#define X(name, value, text) name = value,
	WEFT_ERROR_MAP(X)
#undef X
};

/* What failed, on what, and what to do about it. Filled only on failure. */
struct weft_error {
	int code; /* the negative value that the call returned */
	char msg[500];
};

/* A short text for a negative return value of any weft call (errno values included).
 * Never NULL, static storage. Any thread; not async-signal-safe. */
WEFT_API const char *weft_strerror(int code);

#ifdef __cplusplus
}
#endif
#endif
