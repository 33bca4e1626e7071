/* SPDX-License-Identifier: Apache-2.0 */
/* Code provenance as others want it: {"v1":[{"kind","name","version","paths"}]}. The format knows libraries and the
 * standard library; the program's own code is what is in none of them. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/json.h"
#include "base/alloc.h"
#include "base/error.h"
#include "export/aggregate.h"
#include "export/provenance.h"

/* Packages of all recordings, each once, and the paths of each. */
struct attachment {
	struct weft__keys texts, packages, paths;
};

struct package {
	uint32_t standard, name, version;
};
struct path {
	uint32_t package, path;
};

static int add(struct attachment *to, const struct weft__provenance *from, uint32_t number)
{
	const struct weft__package *of = &from->packages[from->package_of_path[number]];
	struct package package = {.standard = of->origin == WEFT__ORIGIN_SYSTEM};
	struct path path;
	uint32_t ignored;

	if (of->origin != WEFT__ORIGIN_SYSTEM && of->origin != WEFT__ORIGIN_LIBRARY)
		return 0;
	if (weft__keys_text(&to->texts, weft__provenance_text(from, of->name), &package.name) < 0 ||
	    weft__keys_text(&to->texts, weft__provenance_text(from, of->version), &package.version) < 0 ||
	    weft__keys_add(&to->packages, &package, sizeof(package), &path.package) < 0 ||
	    weft__keys_text(&to->texts, weft__keys_at(&from->paths, number, NULL), &path.path) < 0)
		return -ENOMEM;
	return weft__keys_add(&to->paths, &path, sizeof(path), &ignored);
}

static int add_recording(struct attachment *to, const struct weft__recording *rec)
{
	struct weft__provenance from;
	int rc = weft__provenance_init(&from, rec, NULL);
	uint32_t i;

	if (rc == 0)
		rc = weft__provenance_modules(&from);
	for (i = 0; i < from.paths.n && rc == 0; i++)
		rc = add(to, &from, i);
	weft__provenance_fini(&from);
	return rc;
}

static const char *text_of(const struct attachment *of, uint32_t number)
{
	return weft__keys_at(&of->texts, number, NULL);
}

static void print_package(struct weft__json *json, const struct attachment *of, uint32_t number)
{
	struct package package;
	uint32_t i;

	memcpy(&package, weft__keys_at(&of->packages, number, NULL), sizeof(package));
	weft__json_begin(json, NULL, '{');
	weft__json_text(json, "kind", package.standard ? "standard library" : "library");
	weft__json_text(json, "name", text_of(of, package.name));
	weft__json_text(json, "version", text_of(of, package.version));
	weft__json_begin(json, "paths", '[');
	for (i = 0; i < of->paths.n; i++) {
		struct path path;

		memcpy(&path, weft__keys_at(&of->paths, i, NULL), sizeof(path));
		if (path.package == number)
			weft__json_text(json, NULL, text_of(of, path.path));
	}
	weft__json_end(json, ']');
	weft__json_end(json, '}');
}

static int print(const struct attachment *of, char **ret, size_t *n)
{
	struct weft__json json = {.out = open_memstream(ret, n)};
	uint32_t i;

	if (!json.out)
		return -ENOMEM;
	weft__json_begin(&json, NULL, '{');
	weft__json_begin(&json, "v1", '[');
	for (i = 0; i < of->packages.n; i++)
		print_package(&json, of, i);
	weft__json_end(&json, ']');
	weft__json_end(&json, '}');
	return fclose(json.out) == 0 ? 0 : -ENOMEM;
}

int weft__provenance_export(struct weft__bytes *out, struct weft__recordings *list, struct weft_error *err)
{
	struct attachment all = {0};
	char *text = NULL;
	size_t n = 0, i;
	int rc = 0;

	for (i = 0; i < list->n && rc == 0; i++)
		rc = add_recording(&all, &list->all[i]);
	if (rc == 0)
		rc = print(&all, &text, &n);
	if (rc == 0) {
		struct weft__bytes bytes = {.at = weft__alloc(n), .n = n, .n_rows = all.packages.n};

		if (bytes.at) {
			memcpy(bytes.at, text, n);
			*out = bytes;
		} else {
			rc = -ENOMEM;
		}
	}
	free(text);
	weft__keys_fini(&all.texts);
	weft__keys_fini(&all.packages);
	weft__keys_fini(&all.paths);
	return rc < 0 ? weft__fail(err, rc, "cannot find out packages: %s", weft_strerror(rc)) : 0;
}

int weft__export_provenance(struct weft__bytes *out, const char *const *paths, size_t n,
			    const struct weft__export_opts *opts, struct weft_error *err)
{
	struct weft__recordings list = {0};
	int rc = weft__export_load(&list, paths, n, err);

	(void)opts;
	if (rc == 0)
		rc = weft__provenance_export(out, &list, err);
	weft__recordings_fini(&list);
	return rc;
}
