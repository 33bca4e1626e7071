/* SPDX-License-Identifier: Apache-2.0 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "cli.h"
#include "run.h"

#define LIBRARY "libweft-preload.so"
#if defined(__x86_64__)
#define MACHINE EM_X86_64
#elif defined(__aarch64__)
#define MACHINE EM_AARCH64
#else
#define MACHINE EM_NONE
#endif

static int cannot(const char *file, const char *why)
{
	cli_fail("cannot record %s: %s (weft record, which will attach from outside, is still to come)", file, why);
	return RUN_CANNOT;
}

/* Whether the program asks for the dynamic loader, which is what preloads. Something unreadable is left to exec to
 * judge. */
static bool has_loader(int fd, const Elf64_Ehdr *ehdr)
{
	Elf64_Phdr phdr;
	unsigned i;

	for (i = 0; i < ehdr->e_phnum; i++) {
		if (pread(fd, &phdr, sizeof(phdr), (off_t)(ehdr->e_phoff + (uint64_t)i * ehdr->e_phentsize)) !=
		    (ssize_t)sizeof(phdr))
			return true;
		if (phdr.p_type == PT_INTERP)
			return true;
	}
	return false;
}

static int check(const char *file)
{
	Elf64_Ehdr ehdr;
	struct stat st;
	int fd, code = 0;

	if (stat(file, &st) == 0 &&
	    (((st.st_mode & S_ISUID) && st.st_uid != geteuid()) || ((st.st_mode & S_ISGID) && st.st_gid != getegid())))
		return cannot(file, "it is setuid or setgid, and the system preloads nothing into such programs");
	if (geteuid() != 0 && getxattr(file, "security.capability", NULL, 0) > 0)
		return cannot(file, "it has file capabilities, and the system preloads nothing into such programs");
	fd = open(file, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0; /* it may be executable all the same */
	if (pread(fd, &ehdr, sizeof(ehdr), 0) == (ssize_t)sizeof(ehdr) && memcmp(ehdr.e_ident, ELFMAG, SELFMAG) == 0) {
		if (ehdr.e_ident[EI_CLASS] != ELFCLASS64 || ehdr.e_machine != MACHINE)
			code = cannot(file, "it is for another machine than this weft");
		else if (!has_loader(fd, &ehdr))
			code = cannot(file, "it is statically linked, and nothing can be preloaded into it");
	}
	close(fd);
	return code;
}

static bool is_program(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

int run_find(const char *command, char *file)
{
	const char *at = getenv("PATH"), *end;
	bool seen = false;

	if (strchr(command, '/')) {
		struct stat st;

		snprintf(file, PATH_MAX, "%s", command);
		if (is_program(file))
			return check(file);
		if (stat(file, &st) < 0) {
			cli_fail("there is no program %s: %s", command, strerror(errno));
			return errno == ENOENT || errno == ENOTDIR ? RUN_NOT_FOUND : RUN_CANNOT;
		}
		cli_fail("cannot run %s: it is not an executable file", command);
		return RUN_CANNOT;
	}
	for (at = at ? at : "/usr/local/bin:/usr/bin:/bin"; command[0]; at = end + 1) {
		end = strchrnul(at, ':');
		if (end == at)
			snprintf(file, PATH_MAX, "./%s", command);
		else
			snprintf(file, PATH_MAX, "%.*s/%s", (int)(end - at), at, command);
		if (is_program(file))
			return check(file);
		seen |= access(file, F_OK) == 0;
		if (!*end)
			break;
	}
	if (seen) {
		cli_fail("cannot run '%s': what PATH has by this name is not an executable file", command);
		return RUN_CANNOT;
	}
	cli_fail("there is no program '%s' in PATH", command);
	return RUN_NOT_FOUND;
}

/* Beside this command in a build tree; in the lib directory next to its bin directory when it is installed. */
int run_find_library(char *path)
{
	static const char *const locations[] = {
		"",
		"../lib/",
		"../lib64/",
#if defined(__x86_64__)
		"../lib/x86_64-linux-gnu/",
#elif defined(__aarch64__)
		"../lib/aarch64-linux-gnu/",
#endif
		"../"
	};
	char self[PATH_MAX], tried[PATH_MAX + 64];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *slash;
	size_t i;

	self[n > 0 ? n : 0] = 0;
	slash = strrchr(self, '/');
	if (slash)
		slash[1] = 0;
	for (i = 0; i < sizeof(locations) / sizeof(locations[0]); i++) {
		snprintf(tried, sizeof(tried), "%s%s%s", self, locations[i], LIBRARY);
		if (!realpath(tried, path))
			continue;
		/* The loader splits LD_PRELOAD there and knows no quoting. */
		if (strpbrk(path, ": ")) {
			cli_fail("cannot preload %s: there is a space or a colon in its path", path);
			return RUN_FAILED;
		}
		return 0;
	}
	cli_fail("cannot find %s; it was looked for in %s, and from there in ../lib, ../lib64, ../lib/MACHINE and ..",
		 LIBRARY, self);
	return RUN_FAILED;
}
