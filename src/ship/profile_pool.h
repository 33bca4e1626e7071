/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles of segments for all targets of a process that take some: a segment is read and summed up once, by the first
 * that wants it, in all encodings that the targets want. Bounded: a few segments, until all have them. Context: threads
 * that send. */
#ifndef WEFT_SHIP_PROFILE_POOL_H
#define WEFT_SHIP_PROFILE_POOL_H

#include "export/export.h"
#include "ship/ship.h"

/* A target, from join to leave; the caller's memory. */
struct weft__pool_user {
	uint32_t forms; /* bits by enum weft__export_form */
	const struct weft_export_plugin *encoders;
	const uint32_t *stop; /* as of the target; NULL: never */
	uint32_t number;
	struct weft__pool_user *next;
};

struct weft__pooled;

/* 0, or -EBUSY: there are too many. */
int weft__pool_join(struct weft__pool_user *user);
void weft__pool_leave(struct weft__pool_user *user);

/* What was made of that segment, until it is put back. 0, -ECANCELED when it is to stop, or a negative error with a
 * message. */
int weft__pool_get(struct weft__pool_user *user, const struct weft__parcel *parcel, struct weft__pooled **ret,
		   struct weft_error *err);
const struct weft__bytes *weft__pooled_bytes(const struct weft__pooled *one, enum weft__export_form form);
/* `done`: this target will not ask for it again. */
void weft__pool_put(struct weft__pool_user *user, struct weft__pooled *one, int done);

#endif
