/* SPDX-License-Identifier: Apache-2.0 */
/* exec in place. The signal of a perf event that counts in the kernel waits until the thread comes out of there; if
 * it comes out as another program, that dies of it. So the thread has no such event while it is in exec. Nothing is
 * allocated: a child of vfork may be here. */
#include <stdarg.h>
#include <unistd.h>

#include "preload.h"

/* Of the library inside: record/sample/engine.h. */
int weft__engine_exec_begin(void);
void weft__engine_exec_failed(void);

void weft__preload_exec_failed(bool had)
{
	int saved = errno;

	if (had)
		weft__engine_exec_failed();
	errno = saved;
}

bool weft__preload_exec_begin(void)
{
	return __atomic_load_n(&weft__preload_on, __ATOMIC_ACQUIRE) && weft__preload_thread.child.pid == 0 &&
	       weft__engine_exec_begin();
}

#define EXEC(name, parameters, arguments)                                                                              \
	PRELOAD_API int name parameters                                                                                \
	{                                                                                                              \
		static void *real PRELOAD_NEAR;                                                                        \
		int(*call) parameters = PRELOAD_REAL(real, #name);                                                     \
		bool had = weft__preload_exec_begin();                                                                 \
		int was = weft__preload_late_exec(), r = call arguments;                                               \
                                                                                                                       \
		weft__preload_late_exec_failed(was);                                                                   \
		weft__preload_exec_failed(had);                                                                        \
		return r;                                                                                              \
	}

EXEC(execve, (const char *path, char *const argv[], char *const env[]), (path, argv, env))
EXEC(execv, (const char *path, char *const argv[]), (path, argv))
EXEC(execvp, (const char *file, char *const argv[]), (file, argv))
EXEC(execvpe, (const char *file, char *const argv[], char *const env[]), (file, argv, env))
EXEC(fexecve, (int fd, char *const argv[], char *const env[]), (fd, argv, env))
EXEC(execveat, (int dir, const char *path, char *const argv[], char *const env[], int flags),
     (dir, path, argv, env, flags))

/* Those with a list: on the stack, as the C library does. */
static size_t list_count(va_list args)
{
	size_t n = 1;

	while (va_arg(args, const char *))
		n++;
	return n;
}

static void list_take(char **argv, const char *first, size_t n, va_list args)
{
	argv[0] = (char *)(uintptr_t)first;
	for (size_t i = 1; i <= n; i++)
		argv[i] = va_arg(args, char *);
}

#define EXEC_LIST(name, run, with_env)                                                                                 \
	PRELOAD_API int name(const char *path, const char *arg, ...)                                                   \
	{                                                                                                              \
		va_list args;                                                                                          \
		size_t n;                                                                                              \
                                                                                                                       \
		va_start(args, arg);                                                                                   \
		n = list_count(args);                                                                                  \
		va_end(args);                                                                                          \
		char *argv[n + 1];                                                                                     \
		va_start(args, arg);                                                                                   \
		list_take(argv, arg, n, args);                                                                         \
		char *const *env = (with_env) ? va_arg(args, char *const *) : NULL;                                    \
		va_end(args);                                                                                          \
		(void)env;                                                                                             \
		return run;                                                                                            \
	}

EXEC_LIST(execl, execv(path, argv), 0)
EXEC_LIST(execlp, execvp(path, argv), 0)
EXEC_LIST(execle, execve(path, argv, env), 1)
