/* SPDX-License-Identifier: Apache-2.0 */
#include "package/dpkg.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/atomic.h"
#include "base/text.h"

#define FILE_MAX ((size_t)64 << 20)

/* Debian has moved /lib, /bin and /sbin below /usr; lists may still have the old paths. */
static const char *plain_path(const char *path, size_t *n)
{
	static const char *const moved[] = {"/lib", "/bin", "/sbin"};
	size_t i;

	if (*n < 5 || memcmp(path, "/usr/", 5) != 0)
		return path;
	for (i = 0; i < sizeof(moved) / sizeof(moved[0]); i++)
		if (*n > 4 + strlen(moved[i]) && memcmp(path + 4, moved[i], strlen(moved[i])) == 0) {
			*n -= 4;
			return path + 4;
		}
	return path;
}

/* What users build themselves is elsewhere, and would be looked for in all lists. */
static bool may_be_packaged(const char *path)
{
	static const char *const roots[] = {"/usr/", "/lib", "/bin/", "/sbin/", "/opt/", "/etc/", "/var/lib/"};
	size_t i;

	for (i = 0; i < sizeof(roots) / sizeof(roots[0]); i++)
		if (strncmp(path, roots[i], strlen(roots[i])) == 0)
			return strncmp(path, "/usr/local/", 11) != 0;
	return false;
}

int weft__dpkg_want(struct weft__dpkg *dpkg, const char *path)
{
	size_t n = strlen(path), before = dpkg->wanted.n;
	const char *key = plain_path(path, &n);
	uint32_t at, empty, *grown;

	if (!may_be_packaged(path))
		return 0;
	if (weft__keys_text(&dpkg->texts, "", &empty) < 0 || weft__keys_add(&dpkg->wanted, key, n, &at) < 0)
		return -ENOMEM;
	if (at < before)
		return 0;
	grown = weft__grow(dpkg->package_of, &dpkg->cap_package_of, at, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	dpkg->package_of = grown;
	grown[at] = 0;
	return 0;
}

static int package_get(struct weft__dpkg *dpkg, const char *name, size_t n, uint32_t *ret)
{
	struct weft__dpkg_package *grown;
	size_t before = dpkg->names.n, bare;
	char text[256];

	if (weft__keys_add(&dpkg->names, name, n, ret) < 0)
		return -ENOMEM;
	if (*ret < before)
		return 0;
	grown = weft__grow(dpkg->packages, &dpkg->cap_packages, dpkg->n_packages, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	dpkg->packages = grown;
	grown[dpkg->n_packages] = (struct weft__dpkg_package){0};
	for (bare = 0; bare < n && bare < sizeof(text) - 1 && name[bare] != ':'; bare++)
		text[bare] = name[bare];
	text[bare] = 0;
	if (weft__keys_text(&dpkg->texts, text, &grown[dpkg->n_packages].name) < 0)
		return -ENOMEM;
	dpkg->n_packages++;
	return 0;
}

int weft__dpkg_list(struct weft__dpkg *dpkg, const char *package, size_t package_bytes, const char *text, size_t n)
{
	const char *end = text + n;

	while (text < end) {
		const char *stop = memchr(text, '\n', (size_t)(end - text));
		size_t length = (size_t)((stop ? stop : end) - text);
		const char *path = plain_path(text, &length);
		uint32_t at = length ? weft__keys_find(&dpkg->wanted, path, length) : WEFT__MAP_NONE, number;

		if (at != WEFT__MAP_NONE) {
			if (package_get(dpkg, package, package_bytes, &number) < 0)
				return -ENOMEM;
			dpkg->n_found += !dpkg->package_of[at];
			dpkg->package_of[at] = number + 1;
		}
		text = stop ? stop + 1 : end;
	}
	return 0;
}

/* One stanza of the status file. */
struct stanza {
	const char *package, *version, *source, *architecture;
	size_t package_bytes, version_bytes, source_bytes, architecture_bytes;
	bool base;
};

static bool is_stanza_field(const char *line, size_t n, const char *name, const char **value, size_t *bytes)
{
	size_t length = strlen(name);

	if (n <= length || memcmp(line, name, length) != 0)
		return false;
	for (; length < n && line[length] == ' '; length++)
		;
	*value = line + length;
	*bytes = n - length;
	return true;
}

static void take_field(struct stanza *to, const char *line, size_t n)
{
	const char *value;
	size_t bytes;

	if (is_stanza_field(line, n, "Package:", &to->package, &to->package_bytes) ||
	    is_stanza_field(line, n, "Version:", &to->version, &to->version_bytes) ||
	    is_stanza_field(line, n, "Architecture:", &to->architecture, &to->architecture_bytes))
		return;
	if (is_stanza_field(line, n, "Source:", &value, &bytes)) {
		const char *space = memchr(value, ' ', bytes); /* a version may follow */

		to->source = value;
		to->source_bytes = space ? (size_t)(space - value) : bytes;
	} else if (is_stanza_field(line, n, "Essential:", &value, &bytes)) {
		to->base |= bytes == 3 && memcmp(value, "yes", 3) == 0;
	} else if (is_stanza_field(line, n, "Priority:", &value, &bytes)) {
		to->base |= (bytes == 8 && memcmp(value, "required", 8) == 0) ||
			    (bytes == 9 && memcmp(value, "important", 9) == 0);
	}
}

static int text_n(struct weft__dpkg *dpkg, const char *text, size_t n, uint32_t *ret)
{
	char copy[256];

	if (n >= sizeof(copy))
		n = sizeof(copy) - 1;
	if (n)
		memcpy(copy, text, n);
	copy[n] = 0;
	return weft__keys_text(&dpkg->texts, copy, ret);
}

/* Lists of packages that may be there for several architectures have it in their names. */
static int take_stanza(struct weft__dpkg *dpkg, const struct stanza *of)
{
	char name[400];
	uint32_t at[2];
	size_t i;
	int n;

	if (!of->package || of->package_bytes > 200 || of->architecture_bytes > 100)
		return 0;
	n = snprintf(name, sizeof(name), "%.*s:%.*s", (int)of->package_bytes, of->package, (int)of->architecture_bytes,
		     of->architecture ? of->architecture : "");
	at[0] = weft__keys_find(&dpkg->names, of->package, of->package_bytes);
	at[1] = weft__keys_find(&dpkg->names, name, (size_t)n);
	for (i = 0; i < 2; i++) {
		struct weft__dpkg_package *to = at[i] == WEFT__MAP_NONE ? NULL : &dpkg->packages[at[i]];

		if (!to)
			continue;
		to->base = of->base;
		if (text_n(dpkg, of->version, of->version_bytes, &to->version) < 0 ||
		    text_n(dpkg, of->source ? of->source : of->package,
			   of->source ? of->source_bytes : of->package_bytes, &to->source) < 0)
			return -ENOMEM;
	}
	return 0;
}

int weft__dpkg_status(struct weft__dpkg *dpkg, const char *text, size_t n)
{
	const char *end = text + n;
	struct stanza stanza = {0};
	int rc = 0;

	while (text < end && rc == 0) {
		const char *stop = memchr(text, '\n', (size_t)(end - text));
		size_t length = (size_t)((stop ? stop : end) - text);

		if (length == 0) {
			rc = take_stanza(dpkg, &stanza);
			stanza = (struct stanza){0};
		} else {
			take_field(&stanza, text, length);
		}
		text = stop ? stop + 1 : end;
	}
	return rc == 0 ? take_stanza(dpkg, &stanza) : rc;
}

/* NULL and 0: it cannot be read. `*ret` is the caller's. */
static int read_dpkg_file(int dir, const char *name, char **ret, size_t *n)
{
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct stat st;
	ssize_t got;
	int rc = 0;

	*ret = NULL;
	*n = 0;
	if (fd < 0)
		return 0;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0 && (uint64_t)st.st_size <= FILE_MAX) {
		*ret = weft__alloc((size_t)st.st_size);
		rc = *ret ? 0 : -ENOMEM;
	}
	while (*ret && *n < (size_t)st.st_size && (got = read(fd, *ret + *n, (size_t)st.st_size - *n)) > 0)
		*n += (size_t)got;
	close(fd);
	return rc;
}

/* Of the name of a file or a package what the other may begin with, too: behind "lib". Parts of the C library that have
 * names of their own are in libc6. */
static const char *stem_of(const char *name)
{
	static const char *const of_libc[] = {"ld-linux", "libm.so", "libpthread.so", "libdl.so", "librt.so"};
	size_t i;

	for (i = 0; i < sizeof(of_libc) / sizeof(of_libc[0]); i++)
		if (strncmp(name, of_libc[i], strlen(of_libc[i])) == 0)
			return "c6";
	return strncmp(name, "lib", 3) == 0 ? name + 3 : name;
}

static bool is_likely(const struct weft__dpkg *dpkg, const char *list)
{
	const char *stem = stem_of(list);
	uint32_t i;

	for (i = 0; i < dpkg->wanted.n; i++) {
		size_t n, base;
		const char *path = weft__keys_at(&dpkg->wanted, i, &n), *of;
		char name[16] = "";

		for (base = n; base && path[base - 1] != '/'; base--)
			;
		snprintf(name, sizeof(name), "%.*s", (int)(n - base), path + base);
		of = stem_of(name);
		if (of[0] == stem[0] && (of[1] == stem[1] || of[1] == '.' || of[1] == '-'))
			return true;
	}
	return false;
}

static bool dpkg_done(const struct weft__dpkg *dpkg)
{
	return dpkg->n_found == dpkg->wanted.n || (dpkg->stop && load_relaxed(dpkg->stop));
}

static int read_lists(struct weft__dpkg *dpkg, DIR *lists, bool likely)
{
	struct dirent *entry;
	int rc = 0;

	while (rc == 0 && !dpkg_done(dpkg) && (entry = readdir(lists))) {
		char *text;
		size_t n;

		if (!weft__ends_in(entry->d_name, ".list") || is_likely(dpkg, entry->d_name) != likely)
			continue;
		rc = read_dpkg_file(dirfd(lists), entry->d_name, &text, &n);
		if (rc == 0 && text)
			rc = weft__dpkg_list(dpkg, entry->d_name, strlen(entry->d_name) - strlen(".list"), text, n);
		dpkg->n_read++;
		weft__free(text);
	}
	return rc;
}

int weft__dpkg_read(struct weft__dpkg *dpkg, const char *dir)
{
	int at = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), info, rc = 0;
	DIR *lists = NULL;
	char *text;
	size_t n;

	if (at < 0 || dpkg->wanted.n == 0) {
		if (at >= 0)
			close(at);
		return 0;
	}
	info = openat(at, "info", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	lists = info < 0 ? NULL : fdopendir(info);
	if (lists) {
		rc = read_lists(dpkg, lists, true);
		rewinddir(lists);
		if (rc == 0)
			rc = read_lists(dpkg, lists, false);
		closedir(lists);
	} else if (info >= 0) {
		close(info);
	}
	text = NULL;
	if (rc == 0 && dpkg->n_packages)
		rc = read_dpkg_file(at, "status", &text, &n);
	if (rc == 0 && text) {
		rc = weft__dpkg_status(dpkg, text, n);
		weft__free(text);
	}
	close(at);
	return rc;
}

const struct weft__dpkg_package *weft__dpkg_get(const struct weft__dpkg *dpkg, const char *path)
{
	size_t n = strlen(path);
	const char *key = plain_path(path, &n);
	uint32_t at = weft__keys_find(&dpkg->wanted, key, n);

	return at == WEFT__MAP_NONE || !dpkg->package_of[at] ? NULL : &dpkg->packages[dpkg->package_of[at] - 1];
}

void weft__dpkg_fini(struct weft__dpkg *dpkg)
{
	weft__keys_fini(&dpkg->texts);
	weft__keys_fini(&dpkg->wanted);
	weft__keys_fini(&dpkg->names);
	weft__free(dpkg->package_of);
	weft__free(dpkg->packages);
	memset(dpkg, 0, sizeof(*dpkg));
}
