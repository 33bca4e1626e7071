/* SPDX-License-Identifier: Apache-2.0 */
#include "base/short.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/dir.h"
#include "cli.h"
#include "report.h"
#include "run.h"

static struct weft__short_page *page; /* NULL: there is none, and children write lines */
static int page_fd = -1;
static struct stat page_st;

void run_short_open(const struct run_dir *dir)
{
	struct stat st;
	void *at;
	int fd = weft__dir_create(dir->fd, REPORT_SHORT_FILE, FILE_MODE);

	if (fd >= 0)
		close(fd);
	else if (weft__dir_mine(dir->fd, REPORT_SHORT_FILE, &st) < 0)
		cli_warn("processes that end soon are not counted: %s/" REPORT_SHORT_FILE
			 " is not a file of this user with one name; remove it",
			 dir->path);
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
void run_short_close(const struct run_dir *dir)
{
	uint64_t born, left;
	FILE *file;
	size_t i;
	int fd;

	if (!page)
		return;
	__atomic_store_n(&page->closed, 1, __ATOMIC_RELEASE);
	fd = weft__dir_file(dir->fd, REPORT_SHORT_FILE, O_WRONLY | O_APPEND);
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
	born = __atomic_load_n(&page->born, __ATOMIC_ACQUIRE);
	left = __atomic_load_n(&page->left, __ATOMIC_ACQUIRE);
	if (born > left || ftello(file) > 0)
		fprintf(file, "?%" PRIu64 "\n", born > left ? born - left : 0);
	fclose(file);
}

bool run_short_any(const struct run_dir *dir)
{
	struct stat st;

	return weft__dir_mine(dir->fd, REPORT_SHORT_FILE, &st) == 0 && st.st_size > 0;
}
