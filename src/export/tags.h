/* SPDX-License-Identifier: Apache-2.0 */
/* Tags of a profile: those that were given, and what the recording says where they say nothing: service, env, version,
 * host, runtime-id, the labels of the recording's user, and what the cloud said of the machine. Context: CALLER. */
#ifndef WEFT_EXPORT_TAGS_H
#define WEFT_EXPORT_TAGS_H

#include "analyze/recording.h"
#include "export/export.h"

#define WEFT__TAGS_MAX 64

struct weft__tags {
	struct weft__export_tag at[WEFT__TAGS_MAX];
	size_t n;
	size_t n_beyond;     /* tags that were given and do not fit */
	char runtime_id[40]; /* the recording's id, where nothing else names the run */
};

/* Texts are those of the options and the recording, which must outlive it. */
void weft__tags_init(struct weft__tags *tags, const struct weft__export_opts *opts, const struct weft__recording *rec);
/* NULL: there is none. */
const char *weft__tags_get(const struct weft__tags *tags, const char *key);

#endif
