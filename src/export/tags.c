/* SPDX-License-Identifier: Apache-2.0 */
#include "export/tags.h"

#include <stdio.h>
#include <string.h>

#include "base/fact.h"

const char *weft__tags_get(const struct weft__tags *tags, const char *key)
{
	size_t i;

	for (i = 0; i < tags->n; i++)
		if (strcmp(tags->at[i].key, key) == 0)
			return tags->at[i].value;
	return NULL;
}

/* The first of a key counts. */
static void add(struct weft__tags *tags, const char *key, const char *value)
{
	if (!key || !key[0] || !value || !value[0] || weft__tags_get(tags, key))
		return;
	if (tags->n == WEFT__TAGS_MAX) {
		tags->n_beyond++;
		return;
	}
	tags->at[tags->n++] = (struct weft__export_tag){key, value};
}

static const char *base_of(const char *path)
{
	const char *slash = path ? strrchr(path, '/') : NULL;

	return slash ? slash + 1 : path;
}

/* The user's labels of the recording, and the cloud's facts. */
static void add_facts(struct weft__tags *tags, const struct weft__names *names)
{
	size_t i;

	for (i = 0; i < names->n_facts; i++)
		if (strncmp(names->facts[i].key, FACT_LABEL, strlen(FACT_LABEL)) == 0)
			add(tags, names->facts[i].key + strlen(FACT_LABEL), names->facts[i].value);
	for (i = 0; i < names->n_facts; i++)
		if (weft__fact_of_cloud(names->facts[i].key))
			add(tags, names->facts[i].key, names->facts[i].value);
}

void weft__tags_init(struct weft__tags *tags, const struct weft__export_opts *opts, const struct weft__recording *rec)
{
	const struct weft__names *names = &rec->names;
	size_t i;

	*tags = (struct weft__tags){.n = 0};
	for (i = 0; i < opts->n_tags; i++)
		add(tags, opts->tags[i].key, opts->tags[i].value);
	for (i = 0; i < sizeof(rec->id); i++)
		snprintf(tags->runtime_id + 2 * i, 3, "%02x", rec->id[i]);
	add(tags, "service", weft__names_fact(names, "service.name"));
	add(tags, "service", base_of(weft__names_fact(names, "process.exe")));
	add(tags, "env", weft__names_fact(names, FACT_LABEL "env"));
	add(tags, "version", weft__names_fact(names, FACT_LABEL "version"));
	add(tags, "env", weft__names_fact(names, "deployment.environment.name"));
	add(tags, "version", weft__names_fact(names, "service.version"));
	add(tags, "host", weft__names_fact(names, "host.name"));
	add(tags, "runtime-id", weft__names_fact(names, "service.instance.id"));
	add(tags, "runtime-id", tags->runtime_id);
	add_facts(tags, names);
}
