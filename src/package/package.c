/* SPDX-License-Identifier: Apache-2.0 */
#include "package/package.h"

#include <stdio.h>
#include <string.h>

const char *weft__origin_name(enum weft__origin origin)
{
	static const char *const names[WEFT__ORIGINS] = {
		[WEFT__ORIGIN_UNKNOWN] = "unknown", [WEFT__ORIGIN_PROGRAM] = "program",
		[WEFT__ORIGIN_LIBRARY] = "library", [WEFT__ORIGIN_SYSTEM] = "system",
		[WEFT__ORIGIN_KERNEL] = "kernel",   [WEFT__ORIGIN_GENERATED] = "generated",
	};

	return origin < WEFT__ORIGINS ? names[origin] : "unknown";
}

void weft__package_name(struct weft__package_found *to, const char *text, size_t n)
{
	to->name = text;
	to->name_bytes = n;
}

void weft__package_version(struct weft__package_found *to, const char *text, size_t n)
{
	to->version = text;
	to->version_bytes = n;
}

/* "serde_json-1.0.107": where the version begins is the first '-' with a digit behind it. */
static bool split_version(const char *text, size_t n, struct weft__package_found *to)
{
	size_t i;

	for (i = 1; i + 1 < n; i++)
		if (text[i] == '-' && text[i + 1] >= '0' && text[i + 1] <= '9') {
			weft__package_name(to, text, i);
			weft__package_version(to, text + i + 1, n - i - 1);
			return true;
		}
	return false;
}

/* The part of a path behind `before`, up to the next '/'; NULL: there is none. */
static const char *part_behind(const char *path, const char *before, size_t *n)
{
	const char *at = strstr(path, before);

	if (!at)
		return NULL;
	at += strlen(before);
	*n = strcspn(at, "/");
	return at[*n] == '/' && *n > 0 ? at : NULL;
}

/* Source files of crates say so in their paths, wherever they were built. */
bool weft__package_of_source(const char *file, struct weft__package_found *to)
{
	size_t n, index;
	const char *at = part_behind(file, "/registry/src/", &index);

	if (at) {
		at += index + 1;
		n = strcspn(at, "/");
		to->origin = WEFT__ORIGIN_LIBRARY;
		to->manager = "cargo";
		return at[n] == '/' && split_version(at, n, to);
	}
	at = strncmp(file, "/rustc/", 7) == 0 ? part_behind(file, "/library/", &n) : NULL;
	if (!at)
		return false;
	to->origin = WEFT__ORIGIN_SYSTEM;
	to->manager = "rust";
	weft__package_name(to, at, n);
	weft__package_version(to, file + 7, strcspn(file + 7, "/"));
	return true;
}

/* The same behind the last `before`: packages may be in packages. */
static const char *part_behind_last(const char *path, const char *before, size_t *n)
{
	const char *at = strstr(path, before), *next;

	while (at && (next = strstr(at + 1, before)))
		at = next;
	return at ? part_behind(at, before, n) : NULL;
}

/* Files that package managers of languages put where their path names the package. */
static bool of_path(const char *path, struct weft__package_found *to)
{
	static const struct {
		const char *before, *manager;
	} places[] = {{"/node_modules/", "npm"}, {"/site-packages/", "python"}, {"/dist-packages/", "python"}};
	const char *at;
	size_t n, i;

	to->origin = WEFT__ORIGIN_LIBRARY;
	at = part_behind_last(path, "/gems/", &n);
	if (at && split_version(at, n, to)) {
		to->manager = "gem";
		return true;
	}
	for (i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		at = part_behind_last(path, places[i].before, &n);
		if (!at)
			continue;
		to->manager = places[i].manager;
		weft__package_name(to, at, n);
		return true;
	}
	return false;
}

/* Of the system wherever they are: C library, loader, the compiler's runtime. */
static bool is_base(const char *name)
{
	static const char *const names[] = {"libc.so",  "ld-linux", "libm.so",     "libpthread.so",
					    "libdl.so", "librt.so", "libgcc_s.so", "libstdc++.so"};
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strncmp(name, names[i], strlen(names[i])) == 0)
			return true;
	return false;
}

/* "libfoo.so.1.2": the file itself, with the version in its name. */
static void of_file(const char *path, struct weft__package_found *to)
{
	const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path, *so = strstr(base, ".so.");

	to->origin = is_base(base) ? WEFT__ORIGIN_SYSTEM : WEFT__ORIGIN_LIBRARY;
	to->manager = "file";
	weft__package_name(to, base, so ? (size_t)(so + 3 - base) : strlen(base));
	if (so && so[4] >= '0' && so[4] <= '9')
		weft__package_version(to, so + 4, strlen(so + 4));
}

static bool of_debian(const struct weft__dpkg *dpkg, const char *path, struct weft__package_found *to)
{
	const struct weft__dpkg_package *package = weft__dpkg_get(dpkg, path);
	const char *name, *version, *source;

	if (!package)
		return false;
	name = weft__keys_at(&dpkg->texts, package->name, NULL);
	version = weft__keys_at(&dpkg->texts, package->version, NULL);
	source = weft__keys_at(&dpkg->texts, package->source, NULL);
	to->manager = "debian";
	weft__package_name(to, name, strlen(name));
	weft__package_version(to, version, strlen(version));
	to->origin = package->base || strcmp(source, "glibc") == 0 || strncmp(source, "gcc-", 4) == 0
			     ? WEFT__ORIGIN_SYSTEM
			     : WEFT__ORIGIN_LIBRARY;
	return true;
}

void weft__package_of_file(const struct weft__dpkg *dpkg, const char *path, struct weft__package_found *to)
{
	if (!of_debian(dpkg, path, to) && !of_path(path, to))
		of_file(path, to);
}

void weft__package_fact(const struct weft__package_found *of, char *to, size_t bytes)
{
	char name[256], *at;

	snprintf(name, sizeof(name), "%.*s", (int)(of->name_bytes < 255 ? of->name_bytes : 255), of->name);
	for (at = name; (at = strchr(at, ' '));)
		*at = '_'; /* spaces separate */
	snprintf(to, bytes, "%s %s %s%s%.*s", weft__origin_name(of->origin), of->manager[0] ? of->manager : "-", name,
		 of->version_bytes ? " " : "", (int)(of->version_bytes < 300 ? of->version_bytes : 300),
		 of->version_bytes ? of->version : "");
}
