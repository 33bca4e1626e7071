/* SPDX-License-Identifier: Apache-2.0 */
/* Code that tests make up: a program with functions of 256 bytes each, a library without names, and the kernel. */
#ifndef WEFT_TEST_CODE_H
#define WEFT_TEST_CODE_H

#include "analyze/frames.h"
#include "segment/defs.h"
#include "weft_test.h"

enum { CODE_APP = 1, CODE_LIB = 2, CODE_KERNEL = 3 };

/* Functions of the program, by number. INNER is inlined into OUTER: one place, two frames. */
enum { F_START, F_MAIN, F_LOOP, F_UPLOAD, F_DEFLATE, F_MATCH, F_CRC, F_OUTER, F_N };

static const struct weft_module code_modules[] = {
	{CODE_APP, WEFT_MODULE_FILE, "/opt/demo/bin/app", 0x400000, 0x500000, 0x1000, 4, {0xab, 0xcd, 1, 2}},
	{CODE_LIB, WEFT_MODULE_FILE, "/opt/demo/lib/libnone.so.1", 0x7f0000000000, 0x7f0000100000, 0x2000, 0, {0}},
	{CODE_KERNEL, WEFT_MODULE_KERNEL, "[kernel]", 0, 0, 0, 0, {0}},
};

static const struct {
	const char *function;
	const char *file;
	uint32_t line;
} code_names[] = {
	{"_start", "", 0},
	{"main", "main.c", 10},
	{"run_loop", "loop.c", 20},
	{"handle_upload", "upload.c", 30},
	{"deflate", "deflate.c", 40},
	{"longest_match", "deflate.c", 50},
	{"crc32", "crc.c", 60},
	{"outer", "inline.c", 70},
};

static inline struct weft_frame code_app(uint32_t function)
{
	return (struct weft_frame){CODE_APP, function * 256u + 17};
}

static inline struct weft_frame code_lib(uint64_t offset)
{
	return (struct weft_frame){CODE_LIB, offset};
}

static inline int code_add_modules(struct weft__frames *frames)
{
	size_t i;

	for (i = 0; i < 3; i++)
		if (weft__frames_add_module(frames, &code_modules[i]) < 0)
			return -1;
	return 0;
}

static inline int code_add_symbols(struct weft__frames *frames)
{
	static const struct weft_symbol_frame inlined[] = {{"inner", "inline.h", 7, 1}, {"outer", "inline.c", 70, 0}};
	static const struct weft_symbol_frame in_kernel[] = {{"do_syscall_64", "", 0, 0}};
	static const struct weft_symbol_def kernel = {CODE_KERNEL, 1, 0xffffffff81000010, in_kernel};
	uint32_t i;

	for (i = 0; i < F_N; i++) {
		struct weft_symbol_frame one = {code_names[i].function, code_names[i].file, code_names[i].line, 0};
		struct weft_symbol_def def = {CODE_APP, 1, code_app(i).offset, &one};

		if (i == F_OUTER) {
			def.n_frames = 2;
			def.frames = inlined;
		}
		if (weft__frames_add_symbol(frames, &def) < 0)
			return -1;
	}
	return weft__frames_add_symbol(frames, &kernel);
}

/* The same as definitions of a segment. Ids of names: functions from 1, files from 101. */
static inline void code_define(struct weft__defs *defs)
{
	struct weft__symbol_names frame[2];
	uint32_t i;

	for (i = 0; i < 3; i++)
		weft__defs_module(defs, &code_modules[i]);
	for (i = 0; i < F_N; i++) {
		weft__defs_name(defs, 1 + i, code_names[i].function);
		weft__defs_name(defs, 101 + i, code_names[i].file);
		frame[0] = (struct weft__symbol_names){1 + i, 101 + i, code_names[i].line, 0};
		weft__defs_symbol(defs, CODE_APP, code_app(i).offset, frame, 1);
	}
	weft__defs_name(defs, 90, "inner");
	weft__defs_name(defs, 190, "inline.h");
	frame[1] = frame[0];
	frame[0] = (struct weft__symbol_names){90, 190, 7, 1};
	weft__defs_symbol(defs, CODE_APP, code_app(F_OUTER).offset, frame, 2);
}

#define CODE_DEFINE_STACK(defs, id, flags, ...)                                                                        \
	weft__defs_stack(defs,                                                                                         \
			 &(struct weft_stack){id, flags,                                                               \
					      sizeof((struct weft_frame[]){__VA_ARGS__}) / sizeof(struct weft_frame),  \
					      (struct weft_frame[]){__VA_ARGS__}})

#define CODE_STACK(frames, id, flags, ...)                                                                             \
	CHECK_EQ(weft__frames_add_stack(frames, &(struct weft_stack){id, flags,                                        \
								     sizeof((struct weft_frame[]){__VA_ARGS__}) /      \
									     sizeof(struct weft_frame),                \
								     (struct weft_frame[]){__VA_ARGS__}}),             \
		 0)

#endif
