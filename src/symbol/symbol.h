/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses to names. CALLER, one thread: libdw is not made for more.
 *
 *     weft__symbolizer_open(&sym, NULL, &err);
 *     weft__symbolizer_add(sym, &module, &id);              each module once
 *     n = weft__symbolizer_resolve(sym, &place, &frames);   each address, innermost frame first
 *     weft__symbolizer_close(sym);
 *
 * A symbolizer is a chain of sources (struct weft__source_ops, one file each), asked in turn until one knows:
 *
 *     kernel    kallsyms
 *     vdso      the image that the kernel maps, when it is the same build
 *     jit       perf maps and jitdumps
 *     elf       symbol tables and DWARF of the file, of its separate debug file, of its MiniDebugInfo, of debuginfod
 *     unknown   module+0xoffset, always
 *
 * Files are read when an address in them is first asked for, DWARF units likewise, and answers are kept. Everything
 * read is untrusted: what is cut or corrupt gives fewer names. */
#ifndef WEFT_SYMBOL_SYMBOL_H
#define WEFT_SYMBOL_SYMBOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "weft/error.h"

/* One mapping of a file that holds code, as in /proc/PID/maps: ip lies in [start, end), and at ip - start + offset
 * in the file. Code without a file (JIT) has the path "" or what the kernel calls it. "[kernel]": start and end are
 * those of the kernel's text when it was recorded, or 0 when not known. */
struct weft__symbol_module {
	const char *path;
	const uint8_t *build_id; /* NULL: not known, and then any file at `path` will do */
	uint32_t build_id_n;
	uint32_t pid; /* for perf maps and jitdumps; 0: not known */
	uint32_t uid; /* whose perf maps and jitdumps are believed, beside root's and those of this user */
	uint64_t start;
	uint64_t end;
	uint64_t offset;
};

/* An address to look up. For a return address pass ip - 1, which lies in the call. */
struct weft__symbol_place {
	uint32_t module; /* from weft__symbolizer_add */
	uint64_t ip;
	uint64_t time_ns; /* when the sample was taken: a jitdump says what was there then; 0: what came last */
};

/* Texts live as long as the symbolizer. */
struct weft__symbol {
	const char *function; /* demangled; never NULL */
	const char *raw;      /* as the file has it; NULL when nobody knows the function */
	const char *file;     /* NULL: not known */
	uint32_t line;        /* 0: not known */
	bool inlined;         /* into the next frame */
	uint64_t offset;      /* of the address in the function, also where nobody knows its name; 0 for inlined ones */
};

struct weft__symbol_frames {
	const struct weft__symbol *at;
	uint32_t n;
	const char *source; /* which of the chain answered */
};

struct weft__symbolizer_opts {
	const char *root;       /* put before the paths of modules; NULL: "" */
	const char *debug_dirs; /* separated by ':'; NULL: "/usr/lib/debug" */
	const char *jit_dir;    /* of perf-PID.map and jit-PID.dump; NULL: "/tmp" */
	const char *kallsyms;   /* NULL: "/proc/kallsyms" */
	bool no_debuginfod;     /* even when DEBUGINFOD_URLS is set */
};

struct weft__symbolizer;

int weft__symbolizer_open(struct weft__symbolizer **ret, const struct weft__symbolizer_opts *opts,
			  struct weft_error *err);
void weft__symbolizer_close(struct weft__symbolizer *sym);

/* Copies what it is given. */
int weft__symbolizer_add(struct weft__symbolizer *sym, const struct weft__symbol_module *module, uint32_t *ret_id);
/* A jitdump of that process which is not in opts.jit_dir. */
int weft__symbolizer_add_jitdump(struct weft__symbolizer *sym, uint32_t pid, const char *path);

/* The number of frames, at least 1, or -ENOMEM. They are good until the next call. */
int weft__symbolizer_resolve(struct weft__symbolizer *sym, const struct weft__symbol_place *place,
			     struct weft__symbol_frames *ret);
/* All places, file by file, so that one file's tables are at hand at a time; `done` gets the place's index. */
int weft__symbolizer_resolve_all(struct weft__symbolizer *sym, const struct weft__symbol_place *places, size_t n,
				 void (*done)(size_t index, const struct weft__symbol_frames *frames, void *data),
				 void *data);
/* Looks again at what grows while a process runs: perf maps and jitdumps that have changed are read anew. */
void weft__symbolizer_refresh(struct weft__symbolizer *sym);
/* Why the module has fewer names than it could, for people; "" when it has all or was not asked for yet. */
const char *weft__symbolizer_why(const struct weft__symbolizer *sym, uint32_t module);

#endif
