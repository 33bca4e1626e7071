/* SPDX-License-Identifier: Apache-2.0 */
#include "export/provenance.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

/* A package as it is found, before its texts are kept. */
struct found {
	struct weft__package_found of;
	char build_id[2 * WEFT_BUILD_ID_MAX + 1];
};

/* What the segment says: "ORIGIN MANAGER NAME VERSION" (packages.h). Any text may stand there. */
static bool of_fact(const struct weft__recording *rec, const char *path, struct found *to)
{
	static const char *const managers[] = {"debian", "cargo", "rust", "gem", "python", "npm", "file", ""};
	char key[4200];
	const char *text, *manager, *name;
	size_t n, i;

	if (snprintf(key, sizeof(key), PACKAGE_FACT "%s", path) >= (int)sizeof(key))
		return false;
	text = weft__names_fact(&rec->names, key);
	manager = text ? strchr(text, ' ') : NULL;
	name = manager ? strchr(manager + 1, ' ') : NULL;
	if (!name || !name[1])
		return false;
	to->of.manager = "";
	for (i = 0; managers[i][0]; i++)
		if (strlen(managers[i]) == (size_t)(name - manager - 1) &&
		    memcmp(managers[i], manager + 1, strlen(managers[i])) == 0)
			to->of.manager = managers[i];
	to->of.origin = WEFT__ORIGIN_UNKNOWN;
	for (i = 0; i < WEFT__ORIGINS; i++)
		if (strlen(weft__origin_name((enum weft__origin)i)) == (size_t)(manager - text) &&
		    memcmp(weft__origin_name((enum weft__origin)i), text, (size_t)(manager - text)) == 0)
			to->of.origin = (enum weft__origin)i;
	n = strcspn(++name, " ");
	weft__package_name(&to->of, name, n);
	weft__package_version(&to->of, name + n + (name[n] == ' '), strlen(name + n + (name[n] == ' ')));
	return true;
}

static const struct weft_module *module_of(const struct weft__recording *rec, const char *path)
{
	size_t i;

	for (i = 1; i < rec->frames.n_modules; i++)
		if (strcmp(rec->frames.modules[i].def.path, path) == 0)
			return &rec->frames.modules[i].def;
	return NULL;
}

static void of_module(const struct weft__provenance *p, const char *path, bool kernel, struct found *to)
{
	const struct weft_module *def = module_of(p->rec, path);
	const char *exe = weft__names_fact(&p->rec->names, "process.exe");
	const char *release = weft__names_fact(&p->rec->names, "host.kernel");
	size_t i;

	if (kernel || (def && (def->kind == WEFT_MODULE_KERNEL || def->kind == WEFT_MODULE_VDSO))) {
		*to = (struct found){.of = {.origin = WEFT__ORIGIN_KERNEL, .manager = ""}};
		weft__package_name(&to->of, "linux", 5);
		weft__package_version(&to->of, release ? release : "", release ? strlen(release) : 0);
		return;
	}
	if (!path[0] || (def && (def->kind == WEFT_MODULE_CODE || def->kind == WEFT_MODULE_NAMED))) {
		*to = (struct found){
			.of = {.origin = def ? WEFT__ORIGIN_GENERATED : WEFT__ORIGIN_UNKNOWN, .manager = ""}};
		weft__package_name(&to->of, def ? "generated code" : "unknown", def ? 14 : 7);
		return;
	}
	if (!of_fact(p->rec, path, to))
		weft__package_of_file(&p->dpkg, path, &to->of);
	if (exe && strcmp(path, exe) == 0)
		to->of.origin = WEFT__ORIGIN_PROGRAM;
	for (i = 0; def && i < def->build_id_n && i < WEFT_BUILD_ID_MAX; i++)
		snprintf(to->build_id + 2 * i, 3, "%02x", def->build_id[i]);
}

static int text_n(struct weft__provenance *p, const char *text, size_t n, uint32_t *ret)
{
	char copy[256];

	if (n >= sizeof(copy))
		n = sizeof(copy) - 1;
	if (n)
		memcpy(copy, text, n);
	copy[n] = 0;
	return weft__keys_text(&p->texts, copy, ret);
}

static int package_get(struct weft__provenance *p, const struct found *of, uint32_t *ret)
{
	struct key {
		uint32_t origin, manager, name, version;
	} key = {.origin = (uint32_t)of->of.origin};
	struct weft__package *grown;
	uint32_t build_id;

	if (weft__keys_text(&p->texts, of->of.manager, &key.manager) < 0 ||
	    text_n(p, of->of.name, of->of.name_bytes, &key.name) < 0 ||
	    text_n(p, of->of.version, of->of.version_bytes, &key.version) < 0 ||
	    weft__keys_text(&p->texts, of->build_id, &build_id) < 0 ||
	    weft__keys_add(&p->packages_by_key, &key, sizeof(key), ret) < 0)
		return -ENOMEM;
	if (*ret < p->n_packages) {
		if (build_id && p->packages[*ret].build_id != build_id)
			p->packages[*ret].build_id = 0;
		return 0;
	}
	grown = weft__grow(p->packages, &p->cap_packages, p->n_packages, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	p->packages = grown;
	grown[p->n_packages++] = (struct weft__package){of->of.origin, of->of.manager, key.name, key.version, build_id};
	return 0;
}

/* Answers are kept by path. */
static int by_path(struct weft__provenance *p, const char *path, const struct found *of, uint32_t *ret)
{
	size_t before = p->paths.n;
	uint32_t at, *grown;

	if (weft__keys_text(&p->paths, path, &at) < 0 || package_get(p, of, ret) < 0)
		return -ENOMEM;
	if (at < before)
		return 0;
	grown = weft__grow(p->package_of_path, &p->cap_package_of_path, at, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	p->package_of_path = grown;
	grown[at] = *ret;
	return 0;
}

int weft__provenance_place(struct weft__provenance *p, const char *module, bool kernel, const char *file, uint32_t *ret)
{
	struct found found = {.of = {.manager = ""}};
	const char *path = kernel ? "[kernel]" : module;
	uint32_t at;

	if (!kernel && file && file[0] && weft__package_of_source(file, &found.of))
		return package_get(p, &found, ret);
	at = weft__keys_find(&p->paths, path, strlen(path) + 1);
	if (at != WEFT__MAP_NONE) {
		*ret = p->package_of_path[at];
		return 0;
	}
	found = (struct found){.of = {.manager = ""}};
	of_module(p, path, kernel, &found);
	return by_path(p, path, &found, ret);
}

int weft__provenance_modules(struct weft__provenance *p)
{
	const struct weft__frames *frames = &p->rec->frames;
	uint32_t package;
	size_t i;

	for (i = 1; i < frames->n_modules; i++)
		if (weft__provenance_place(p, frames->modules[i].def.path,
					   frames->modules[i].def.kind == WEFT_MODULE_KERNEL, NULL, &package) < 0)
			return -ENOMEM;
	return 0;
}

/* Packages are those of the machine that recorded, if this is it. */
static bool is_elsewhere(const struct weft__recording *rec)
{
	const char *host = weft__names_fact(&rec->names, "host.name");
	char here[256] = "";
	FILE *f = fopen("/proc/sys/kernel/hostname", "re");

	if (f) {
		if (!fgets(here, sizeof(here), f))
			here[0] = 0;
		fclose(f);
		here[strcspn(here, "\n")] = 0;
	}
	return !host || strcmp(host, here) != 0;
}

int weft__provenance_init(struct weft__provenance *p, const struct weft__recording *rec, const char *dpkg_dir)
{
	const struct weft__frames *frames = &rec->frames;
	struct found known;
	uint32_t empty;
	bool away = !dpkg_dir && is_elsewhere(rec);
	size_t i;

	*p = (struct weft__provenance){.rec = rec};
	if (weft__keys_text(&p->texts, "", &empty) < 0)
		return -ENOMEM;
	for (i = 1; i < frames->n_modules; i++) {
		const struct weft_module *def = &frames->modules[i].def;

		if (def->kind != WEFT_MODULE_FILE || of_fact(rec, def->path, &known))
			continue;
		p->elsewhere |= away;
		if (!away && weft__dpkg_want(&p->dpkg, def->path) < 0)
			return -ENOMEM;
	}
	return away ? 0 : weft__dpkg_read(&p->dpkg, dpkg_dir ? dpkg_dir : WEFT__DPKG_DIR);
}

void weft__provenance_fini(struct weft__provenance *p)
{
	weft__dpkg_fini(&p->dpkg);
	weft__keys_fini(&p->texts);
	weft__keys_fini(&p->packages_by_key);
	weft__keys_fini(&p->paths);
	weft__free(p->packages);
	weft__free(p->package_of_path);
	memset(p, 0, sizeof(*p));
}
