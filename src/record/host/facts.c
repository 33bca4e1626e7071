/* SPDX-License-Identifier: Apache-2.0 */
#include "record/host/facts.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "weft/version.h"

static ssize_t read_file(const char *path, char *to, size_t bytes)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -1;
	n = read(fd, to, bytes - 1);
	close(fd);
	if (n >= 0)
		to[n] = 0;
	return n;
}

static void fact_number(struct weft__defs *defs, const char *key, uint64_t v)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, v);
	weft__defs_fact(defs, key, text);
}

static void fact_line(struct weft__defs *defs, const char *key, const char *path)
{
	char text[1024];

	if (read_file(path, text, sizeof(text)) <= 0)
		return;
	text[strcspn(text, "\n")] = 0;
	weft__defs_fact(defs, key, text);
}

static void fact_cmdline(struct weft__defs *defs)
{
	char text[4096];
	ssize_t n = read_file("/proc/self/cmdline", text, sizeof(text));
	ssize_t i;

	if (n <= 0)
		return;
	for (i = 0; i < n - 1; i++)
		if (!text[i])
			text[i] = ' ';
	weft__defs_fact(defs, "process.cmdline", text);
}

static ssize_t exe_path(char *to, size_t bytes)
{
	ssize_t n = readlink("/proc/self/exe", to, bytes - 1);

	if (n > 0)
		to[n] = 0;
	return n;
}

void weft__facts_program(char *to, size_t bytes)
{
	const char *called = program_invocation_short_name, *last;
	char path[4096];

	/* A program that has several names is a link to one of them. One that writes a title over its arguments has
	 * spaces there. */
	if (called && *called == '-') /* a login shell */
		called++;
	if (called && *called && !strpbrk(called, " :/")) {
		snprintf(to, bytes, "%s", called);
		return;
	}
	if (exe_path(path, sizeof(path)) <= 0) {
		snprintf(to, bytes, "unknown");
		return;
	}
	last = strrchr(path, '/');
	snprintf(to, bytes, "%s", last ? last + 1 : path);
}

void weft__facts_host(struct weft__defs *defs)
{
	char path[4096];
	struct utsname uts;

	weft__defs_fact(defs, "weft.version", WEFT_VERSION_STRING);
	if (uname(&uts) == 0) {
		weft__defs_fact(defs, "host.name", uts.nodename);
		weft__defs_fact(defs, "host.arch", uts.machine);
		weft__defs_fact(defs, "host.kernel", uts.release);
	}
	fact_line(defs, "host.boot_id", "/proc/sys/kernel/random/boot_id");
	fact_number(defs, "host.cpus", (uint64_t)sysconf(_SC_NPROCESSORS_ONLN));
	fact_number(defs, "process.pid", (uint64_t)getpid());
	fact_number(defs, "process.uid", (uint64_t)geteuid());
	if (exe_path(path, sizeof(path)) > 0)
		weft__defs_fact(defs, "process.exe", path);
	fact_cmdline(defs);
	fact_line(defs, "process.cgroup", "/proc/self/cgroup");
	weft__facts_container(defs);
}
