/* SPDX-License-Identifier: Apache-2.0 */
#include "base/short.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "report.h"
#include "run.h"

static struct weft__short_page *page; /* NULL: there is none, and children write lines */
static int page_fd = -1;
static struct stat page_st;

void run_short_open(const char *dir)
{
	char path[PATH_MAX + 32];
	void *at;
	int fd;

	snprintf(path, sizeof(path), "%s/" REPORT_SHORT_FILE, dir);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
	if (fd >= 0)
		close(fd);
	page_fd = memfd_create("weft-short-processes", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (page_fd < 0 || ftruncate(page_fd, sizeof(*page)) < 0 ||
	    fcntl(page_fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0 || fstat(page_fd, &page_st) < 0)
		return;
	at = mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED, page_fd, 0);
	if (at == MAP_FAILED)
		return;
	page = at;
	page->mark = SHORT_MARK;
}

void run_short_environment(pid_t self)
{
	char text[96];

	unsetenv(SHORT_ENV);
	if (!page)
		return;
	snprintf(text, sizeof(text), "/proc/%d/fd/%d %" PRIu64, (int)self, page_fd, (uint64_t)page_st.st_ino);
	setenv(SHORT_ENV, text, 1);
}

/* Processes may still be there, which find it closed and write lines. */
void run_short_close(const char *dir)
{
	char path[PATH_MAX + 32];
	FILE *file;
	size_t i;
	int fd;

	if (!page)
		return;
	__atomic_store_n(&page->closed, 1, __ATOMIC_RELEASE);
	snprintf(path, sizeof(path), "%s/" REPORT_SHORT_FILE, dir);
	fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	file = fd >= 0 ? fdopen(fd, "a") : NULL;
	if (!file) {
		if (fd >= 0)
			close(fd);
		return;
	}
	for (i = 0; i < SHORT_NAMES; i++) {
		struct weft__short_name *at = &page->names[i];
		uint64_t n = __atomic_load_n(&at->n, __ATOMIC_ACQUIRE);

		if (n)
			fprintf(file, "*%" PRIu64 " %" PRIu64 " %" PRIu64 " %.*s\n", n, at->cpu_ns, at->lived_ns,
				SHORT_NAME_BYTES, at->name);
	}
	fclose(file);
}
