/* SPDX-License-Identifier: Apache-2.0 */
/* Streams of the C library, which makes their system calls itself: a log that nobody reads blocks in fprintf. Most
 * calls only fill or empty a buffer and take no longer than a clock takes to read; they are measured when the buffer
 * is about to be full or is empty, and always on a stream that has none or ends it with each line. */
#include <stdarg.h>
#include <stdio.h>

#include "stream_lock.h"

#define LINE 256 /* what a line takes, or what has a format; more may be missed once in a buffer */

static inline uint64_t before_write(const FILE *file, size_t bytes)
{
	return (size_t)(file->_IO_write_end - file->_IO_write_ptr) < bytes ? preload_before() : 0;
}

static inline uint64_t before_read(const FILE *file, size_t bytes)
{
	return (size_t)(file->_IO_read_end - file->_IO_read_ptr) < bytes ? preload_before() : 0;
}

static inline int fd_of(const FILE *file)
{
	return file ? file->_fileno : NO_FD;
}

/* FILE must be read before the call, which may close it: BEGIN waits for its lock. */
#define STREAM_BEGIN(type, name, args, pass, file, before, begin)                                                      \
	PRELOAD_API type name args;                                                                                    \
	PRELOAD_API type name args                                                                                     \
	{                                                                                                              \
		static void *real PRELOAD_NEAR;                                                                        \
		type(*call) args = PRELOAD_REAL(real, #name);                                                          \
		uint64_t since = (begin, before);                                                                      \
		int fd = since ? fd_of(file) : NO_FD;                                                                  \
		type r = call pass;                                                                                    \
                                                                                                                       \
		stream_end(file);                                                                                      \
		preload_after(PRELOAD_NAME_##name, (uint64_t)fd, since);                                               \
		return r;                                                                                              \
	}
#define STREAM(type, name, args, pass, file, before)                                                                   \
	STREAM_BEGIN(type, name, args, pass, file, before, stream_begin(file, PRELOAD_NAME_##name))

STREAM(int, fflush, (FILE * file), (file), file, preload_before())
STREAM_BEGIN(int, fclose, (FILE * file), (file), file, preload_before(), (void)0)
STREAM(size_t, fwrite, (const void *at, size_t size, size_t n, FILE *file), (at, size, n, file), file,
       before_write(file, size *n))
STREAM(int, fputs, (const char *text, FILE *file), (text, file), file, before_write(file, LINE))
STREAM(int, puts, (const char *text), (text), stdout, before_write(stdout, LINE))
STREAM(size_t, fread, (void *at, size_t size, size_t n, FILE *file), (at, size, n, file), file,
       before_read(file, size *n))
STREAM(char *, fgets, (char *at, int n, FILE *file), (at, n, file), file, before_read(file, 1))
STREAM(ssize_t, getline, (char **at, size_t *n, FILE *file), (at, n, file), file, before_read(file, 1))
STREAM(ssize_t, getdelim, (char **at, size_t *n, int end, FILE *file), (at, n, end, file), file, before_read(file, 1))

/* Those with a format, by VIA, which has the arguments as a list. */
#define FORMAT(name, shown, args, via, via_args, pass, file)                                                           \
	PRELOAD_API int name args;                                                                                     \
	PRELOAD_API int name args                                                                                      \
	{                                                                                                              \
		static void *real PRELOAD_NEAR;                                                                        \
		int(*call) via_args = PRELOAD_REAL(real, via);                                                         \
		uint64_t since = (stream_begin(file, PRELOAD_NAME_##shown), before_write(file, LINE));                 \
		va_list more;                                                                                          \
		int r;                                                                                                 \
                                                                                                                       \
		va_start(more, format);                                                                                \
		r = call pass;                                                                                         \
		va_end(more);                                                                                          \
		stream_end(file);                                                                                      \
		preload_after(PRELOAD_NAME_##shown, (uint64_t)fd_of(file), since);                                     \
		return r;                                                                                              \
	}
#define FORMAT_LIST(name, shown, args, pass, file)                                                                     \
	PRELOAD_API int name args;                                                                                     \
	PRELOAD_API int name args                                                                                      \
	{                                                                                                              \
		static void *real PRELOAD_NEAR;                                                                        \
		int(*call) args = PRELOAD_REAL(real, #name);                                                           \
		uint64_t since = (stream_begin(file, PRELOAD_NAME_##shown), before_write(file, LINE));                 \
		int r = call pass;                                                                                     \
                                                                                                                       \
		stream_end(file);                                                                                      \
		preload_after(PRELOAD_NAME_##shown, (uint64_t)fd_of(file), since);                                     \
		return r;                                                                                              \
	}

FORMAT(printf, printf, (const char *format, ...), "vprintf", (const char *, va_list), (format, more), stdout)
FORMAT(__printf_chk, printf, (int flag, const char *format, ...), "__vprintf_chk", (int, const char *, va_list),
       (flag, format, more), stdout)
FORMAT(fprintf, fprintf, (FILE * file, const char *format, ...), "vfprintf", (FILE *, const char *, va_list),
       (file, format, more), file)
FORMAT(__fprintf_chk, fprintf, (FILE * file, int flag, const char *format, ...), "__vfprintf_chk",
       (FILE *, int, const char *, va_list), (file, flag, format, more), file)
FORMAT_LIST(vprintf, printf, (const char *format, va_list list), (format, list), stdout)
FORMAT_LIST(__vprintf_chk, printf, (int flag, const char *format, va_list list), (flag, format, list), stdout)
FORMAT_LIST(vfprintf, fprintf, (FILE * file, const char *format, va_list list), (file, format, list), file)
FORMAT_LIST(__vfprintf_chk, fprintf, (FILE * file, int flag, const char *format, va_list list),
	    (file, flag, format, list), file)
