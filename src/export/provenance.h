/* SPDX-License-Identifier: Apache-2.0 */
/* Where code comes from: each mapped file, and each source file of a crate, is classified and gets the name and
 * version of its package. Facts of the segment say it (package/package.h). Where it has none, it is found out on the
 * machine that recorded: dpkg's files are there (docs/decisions/065-provenance.md). Elsewhere only what paths say is
 * known then. Context: CALLER. */
#ifndef WEFT_EXPORT_PROVENANCE_H
#define WEFT_EXPORT_PROVENANCE_H

#include "analyze/recording.h"
#include "package/package.h"

struct weft__package {
	enum weft__origin origin;
	const char *manager;    /* "debian", "cargo", "rust", "gem", "python", "npm", "file" or "" */
	uint32_t name, version; /* texts; version "": not known */
	uint32_t build_id;      /* hex; "": of more files than one, or none */
};

struct weft__provenance {
	struct weft__dpkg dpkg;
	struct weft__keys texts, packages_by_key, paths;
	struct weft__package *packages;
	size_t n_packages, cap_packages;
	uint32_t *package_of_path;
	size_t cap_package_of_path;
	const struct weft__recording *rec;
	bool elsewhere; /* not the machine that recorded, and the segment does not say it of all files */
};

/* `dpkg_dir` NULL: that of this machine, if it is the one that recorded. Each returns 0 or -ENOMEM. */
int weft__provenance_init(struct weft__provenance *p, const struct weft__recording *rec, const char *dpkg_dir);
void weft__provenance_fini(struct weft__provenance *p);

/* The package of a place in code: of its source file where that is one of a crate, else of its module. */
int weft__provenance_place(struct weft__provenance *p, const char *module, bool kernel, const char *file,
			   uint32_t *ret);
/* Adds all modules of the recording. */
int weft__provenance_modules(struct weft__provenance *p);

static inline const char *weft__provenance_text(const struct weft__provenance *p, uint32_t text)
{
	return weft__keys_at(&p->texts, text, NULL);
}

#endif
