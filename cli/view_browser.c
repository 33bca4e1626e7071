/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli.h"
#include "view.h"

extern char **environ;

static int make_dir(struct view_browser *browser, const char *parent, char *path, size_t bytes)
{
	uint64_t random = 0;
	char why[512];

	browser->parent = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (browser->parent < 0)
		return -1;
	if (!cli_temporary_safe(browser->parent, parent, why, sizeof(why))) {
		cli_warn("no file for the browser in %s: %sor set TMPDIR to another one", parent, why);
		return -1;
	}
	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		return -1;
	snprintf(browser->made, sizeof(browser->made), "weft-view-%016llx", (unsigned long long)random);
	if ((size_t)snprintf(path, bytes, "%s/%s", parent, browser->made) >= bytes ||
	    mkdirat(browser->parent, browser->made, 0700) < 0) {
		browser->made[0] = 0;
		return -1;
	}
	return openat(browser->parent, browser->made, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* A directory that nobody else can look into: that of the session, or a new one. */
static int open_dir(struct view_browser *browser, char *path, size_t bytes)
{
	const char *session = getenv("XDG_RUNTIME_DIR"), *temporary = getenv("TMPDIR");
	int fd = session && session[0] == '/' ? open(session, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	struct stat st;

	if (fd >= 0 && fstat(fd, &st) == 0 && st.st_uid == geteuid() && !(st.st_mode & 077)) {
		snprintf(path, bytes, "%s", session);
		return fd;
	}
	if (fd >= 0)
		close(fd);
	return make_dir(browser, temporary && temporary[0] == '/' ? temporary : "/tmp", path, bytes);
}

static bool write_file(const struct view_browser *browser, const char *url)
{
	int fd = openat(browser->fd, browser->file, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	FILE *out = fd >= 0 ? fdopen(fd, "w") : NULL;

	if (!out) {
		if (fd >= 0)
			close(fd);
		return false;
	}
	fprintf(out,
		"<!doctype html><meta charset=\"utf-8\"><meta name=\"referrer\" content=\"no-referrer\">"
		"<meta http-equiv=\"refresh\" content=\"0; url=%s\"><title>weft</title><a href=\"%s\">weft</a>\n",
		url, url);
	return fclose(out) == 0;
}

/* The browser is nobody's child that would have to be waited for, and says nothing here. */
static void start(const char *path)
{
	char *argv[] = {"sh", "-c", "xdg-open \"$0\" >/dev/null 2>&1 &", (char *)(uintptr_t)path, NULL};
	posix_spawnattr_t attributes;
	sigset_t none;
	pid_t pid;
	int status;

	sigemptyset(&none);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setsigmask(&attributes, &none); /* ours are blocked, to be waited for */
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
	if (posix_spawnp(&pid, "sh", NULL, &attributes, argv, environ) == 0)
		(void)waitpid(pid, &status, 0);
	posix_spawnattr_destroy(&attributes);
}

void view_browser_open(struct view_browser *browser, const char *url)
{
	char directory[4096], path[4096 + sizeof(browser->file) + 1];

	if (!getenv("DISPLAY") && !getenv("WAYLAND_DISPLAY"))
		return;
	snprintf(browser->file, sizeof(browser->file), "weft-view-%d.html", (int)getpid());
	browser->fd = open_dir(browser, directory, sizeof(directory));
	if (browser->fd < 0 || !write_file(browser, url)) {
		cli_warn("the browser is not opened: no file could be written for it; open the address by hand");
		return;
	}
	snprintf(path, sizeof(path), "%s/%s", directory, browser->file);
	start(path);
}

void view_browser_close(struct view_browser *browser)
{
	if (browser->fd >= 0) {
		(void)unlinkat(browser->fd, browser->file, 0);
		close(browser->fd);
	}
	if (browser->made[0])
		(void)unlinkat(browser->parent, browser->made, AT_REMOVEDIR);
	if (browser->parent >= 0)
		close(browser->parent);
	browser->fd = browser->parent = -1;
	browser->made[0] = 0;
}
