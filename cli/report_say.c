/* SPDX-License-Identifier: Apache-2.0 */
/* What waits, holders, calls and stacks are called. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/utsname.h>

#include "analyze/label.h"
#include "base/alloc.h"
#include "print.h"
#include "report.h"
#include "weft/wait.h"

#define NAME_COLUMNS 48
#define HOLDERS_SHOWN 3 /* of one wait */

void report_say(struct report_text *text, const char *fmt, ...)
{
	va_list args;
	int n;

	va_start(args, fmt);
	n = vsnprintf(text->at + text->n, sizeof(text->at) - text->n, fmt, args);
	va_end(args);
	if (n > 0)
		text->n += (size_t)n < sizeof(text->at) - text->n ? (size_t)n : sizeof(text->at) - text->n - 1;
}

const char *report_wait_kind(uint32_t what)
{
	return weft__label_wait(what);
}

void report_say_wait(struct report_text *text, const struct report *report, uint32_t what, uint32_t name,
		     uint64_t object)
{
	char label[WEFT__LABEL_WAIT_BYTES];

	report_say(text, "%s",
		   cli_safe(weft__label_waited(&report->rec->names, &report->rec->frames, what, name, object, label,
					       sizeof(label))));
}

#define CALL(name)                                                                                                     \
	{                                                                                                              \
		SYS_##name, #name                                                                                      \
	}

/* Numbers differ between machines: those of another are not translated. */
void report_say_call(struct report_text *text, const struct report *report, uint32_t call)
{
	static const struct {
		long number;
		const char *name;
	} calls[] = {
		CALL(read),           CALL(write),    CALL(readv),    CALL(writev),          CALL(pread64),
		CALL(pwrite64),       CALL(ppoll),    CALL(pselect6), CALL(nanosleep),       CALL(clock_nanosleep),
		CALL(connect),        CALL(accept),   CALL(accept4),  CALL(sendto),          CALL(recvfrom),
		CALL(sendmsg),        CALL(recvmsg),  CALL(futex),    CALL(epoll_pwait),     CALL(wait4),
		CALL(waitid),         CALL(flock),    CALL(fsync),    CALL(fdatasync),       CALL(openat),
		CALL(io_getevents),   CALL(recvmmsg), CALL(sendmmsg), CALL(rt_sigtimedwait), CALL(rt_sigsuspend),
		CALL(fcntl),          CALL(ioctl),    CALL(msync),    CALL(restart_syscall), CALL(mq_timedreceive),
		CALL(semtimedop),     CALL(msgrcv),   CALL(splice),   CALL(sendfile),        CALL(unlinkat),
#ifdef SYS_epoll_wait
		CALL(epoll_wait),     CALL(poll),     CALL(select),   CALL(pause),           CALL(open),
#endif
#ifdef SYS_io_uring_enter
		CALL(io_uring_enter),
#endif
#ifdef SYS_epoll_pwait2
		CALL(epoll_pwait2),
#endif
	};
	const char *arch = weft__names_fact(&report->rec->names, "host.arch");
	struct utsname uts;
	size_t i;

	for (i = 0; i < sizeof(calls) / sizeof(calls[0]) && (!arch || (uname(&uts) == 0 && !strcmp(uts.machine, arch)));
	     i++)
		if (call && (uint32_t)calls[i].number == call - 1) {
			report_say(text, "%s", calls[i].name);
			return;
		}
	if (call)
		report_say(text, "system call %u", call - 1);
}

static const char *name_of(const struct weft__function *function, char *buf)
{
	return cli_function(function->name, NAME_COLUMNS, buf);
}

/* Libraries through which every program calls, and weft's own. */
static bool is_of_all(const char *module)
{
	static const char *const begins[] = {"libc.so",    "libc-", "ld-linux", "libpthread",
					     "linux-vdso", "[",     "libweft"};
	const char *slash = strrchr(module, '/'), *name = slash ? slash + 1 : module;
	size_t i;

	for (i = 0; i < sizeof(begins) / sizeof(begins[0]); i++)
		if (strncmp(name, begins[i], strlen(begins[i])) == 0)
			return true;
	return name[0] == '\0';
}

/* Code of the language rather than of the program, compiled into it. */
static bool is_of_language(const char *name)
{
	static const char *const begins[] = {"std::", "core::", "alloc::", "__gnu_cxx::", "__gthread_"};
	size_t i;

	name += strspn(name, "<(&");
	for (i = 0; i < sizeof(begins) / sizeof(begins[0]); i++)
		if (strncmp(name, begins[i], strlen(begins[i])) == 0)
			return true;
	return false;
}

bool report_is_own(const struct weft__function *function, const char *exe)
{
	return function->interpreted || strcmp(function->module, exe) == 0;
}

int report_calls(const struct weft__function *function, const char *leaf_module, const char *exe)
{
	if (function->kernel || strcmp(function->name, "_start") == 0)
		return 0;
	if (function->interpreted)
		return 2;
	if (strcmp(function->module, exe) == 0)
		return strcmp(function->name, "main") == 0 || is_of_language(function->name) ? 1 : 2;
	return strcmp(function->module, leaf_module) != 0 && !is_of_all(function->module);
}

/* Who called the leaf, where it is not the program's own code; NULL: nobody to be named. */
static const struct weft__function *caller_in(const struct weft__frames *frames, const struct weft__line_list *lines,
					      size_t leaf, const char *exe)
{
	const struct weft__function *inner = &frames->functions[lines->at[leaf].function];
	const struct weft__function *best = NULL;
	size_t i;
	int how = 0;

	for (i = leaf + 1; exe && !report_is_own(inner, exe) && i < lines->n && how < 2; i++) {
		const struct weft__function *function = &frames->functions[lines->at[i].function];

		how = report_calls(function, inner->module, exe);
		if (how == 2 || (how == 1 && !best))
			best = function;
	}
	return best;
}

bool report_say_stack(struct report_text *text, const struct report *report, uint32_t stack, uint32_t kernel)
{
	const struct weft__frames *frames = &report->rec->frames;
	const char *exe = weft__names_fact(&report->rec->names, "process.exe");
	struct weft__line_list lines = {0};
	char name[4 * NAME_COLUMNS + 1];
	const struct weft__function *leaf = NULL, *caller = NULL;
	size_t first = 0;

	if (weft__frames_lines(frames, stack, stack ? 0 : kernel, &lines) == 0 && lines.n > 0)
		leaf = &frames->functions[lines.at[first = weft__frames_outside(frames, &lines)].function];
	if (leaf) {
		report_say(text, "%s", name_of(leaf, name));
		caller = caller_in(frames, &lines, first, exe);
	}
	if (caller)
		report_say(text, ", called from %s", name_of(caller, name));
	weft__free(lines.at);
	return leaf != NULL;
}

/* "in handle_upload > deflate", as much of it as there is. */
static bool say_location(struct report_text *text, const struct report *report, const struct weft__holder *holder)
{
	struct report_text function = {.n = 0};
	bool known = report_say_stack(&function, report, holder->stack, holder->kernel);

	if (holder->in_poll)
		report_say(text, "in %s%s%s", cli_safe(weft__label_location(&report->rec->names, holder->location)),
			   known ? " > " : "", known ? function.at : "");
	else if (known)
		report_say(text, "in %s", function.at);
	return holder->in_poll || known;
}

void report_say_doing(struct report_text *text, const struct report *report, const struct weft__holder *holder)
{
	bool any = false;

	if (holder->what) {
		report_say(text, holder->what == WEFT_WAIT_CALL ? "blocked in " : "itself waiting for ");
		report_say_wait(text, report, holder->what, holder->name, holder->object);
		if (holder->in_poll)
			report_say(text, " in %s",
				   cli_safe(weft__label_location(&report->rec->names, holder->location)));
		if (holder->next) {
			report_say(text, ", held by ");
			report_say_holder(text, report, holder->next);
		}
		return;
	}
	if (holder->off_ns > holder->cpu_ns)
		report_say(text, "off the CPU%s", holder->in_poll || holder->stack || holder->kernel ? ", " : "");
	any = say_location(text, report, holder);
	if (!any && holder->off_ns <= holder->cpu_ns)
		report_say(text, "doing what: not measured");
}

void report_say_holder(struct report_text *text, const struct report *report, const struct weft__holder *holder)
{
	const struct weft_thread *thread = weft__names_thread(&report->rec->names, holder->thread_id);
	char figure[CLI_FIGURE];

	report_say(text, "thread %u", holder->tid);
	if (thread && thread->name[0])
		report_say(text, " \"%.40s\"", cli_safe(thread->name));
	if (holder->held_ns)
		report_say(text, " for %s", cli_ns(holder->held_ns, figure));
	report_say(text, " (");
	report_say_doing(text, report, holder);
	report_say(text, ")");
}

void report_say_holders(struct report_text *text, const struct report *report, const struct weft__holder *holder)
{
	char figure[CLI_FIGURE];
	uint64_t rest_ns = 0;
	size_t i, more = 0;

	for (i = 0; holder; holder = holder->also, i++) {
		if (i < HOLDERS_SHOWN) {
			report_say(text, i ? ", by " : "");
			report_say_holder(text, report, holder);
		} else {
			rest_ns += holder->held_ns;
			more++;
		}
	}
	if (more)
		report_say(text, ", and by %zu more for %s", more, cli_ns(rest_ns, figure));
}

/* span 00f067aa0ba902b7 of trace 4bf9..., endpoint GET /users, user=7,tier=gold */
bool report_say_context(struct report_text *text, const struct report *report, const struct weft__context *context)
{
	const char *endpoint = weft__names_string(&report->rec->names, context->endpoint);
	const char *labels = weft__names_string(&report->rec->names, context->labels);

	if (!weft__context_is_set(context))
		return false;
	if (endpoint && endpoint[0])
		report_say(text, "endpoint %.80s", cli_safe(endpoint));
	if (context->span)
		report_say(text, "%sspan %016" PRIx64, text->n ? ", " : "", context->span);
	if (context->trace_hi || context->trace_lo)
		report_say(text, "%strace %016" PRIx64 "%016" PRIx64, text->n ? ", " : "", context->trace_hi,
			   context->trace_lo);
	if (labels && labels[0])
		report_say(text, "%s%.200s", text->n ? ", " : "", cli_safe(labels));
	return text->n > 0;
}
