/* SPDX-License-Identifier: Apache-2.0 */
/* Segments as profiles of others: the encoders (src/export), and what the bodies of requests are made of. */
#ifndef WEFT_SHIP_PROFILES_H
#define WEFT_SHIP_PROFILES_H

#include "export/export.h"
#include "ship/http.h"

/* The encoders: the command sets it to those that are linked in. NULL: libweft-symbolize.so is opened for them. */
extern const struct weft_export_plugin *weft__profiles_encoders;
/* NULL with the reason, when it cannot be opened. */
const struct weft_export_plugin *weft__profiles_open(struct weft_error *err);

/* A label or a tag of a profile, from the segment. */
struct weft__profile_tags {
	char service[128], host[128], pid[16], env[64], version[64], runtime_id[40], sequence[24];
};
void weft__profile_tags(const struct weft__parcel *parcel, struct weft__profile_tags *ret);
/* Calls `fn` for each label that the user gave the recording, and for what the cloud said of the machine. */
void weft__profile_labels(const struct weft__parcel *parcel, void (*fn)(const char *key, const char *value, void *data),
			  void *data);

void weft__put_text(struct weft__buf *to, const char *text);
/* With its quotation marks. */
void weft__put_json(struct weft__buf *to, const char *text);
void weft__put_base64(struct weft__buf *to, const uint8_t *bytes, size_t n);
/* 2026-11-18T09:00:00.000000000Z */
void weft__put_time(struct weft__buf *to, uint64_t unix_ns);

/* profiles_body.c. The bodies of requests. */
void weft__body_pyroscope(struct weft__buf *to, const struct weft__parcel *parcel, const struct weft__bytes *pprof);
void weft__body_parca(struct weft__buf *to, const struct weft__parcel *parcel, const struct weft__bytes *pprof);
#define DATADOG_BOUNDARY "weft-5f1c0a8e7b2d4c63"
void weft__body_datadog(struct weft__buf *to, const struct weft__parcel *parcel, const struct weft__bytes *pprof,
			const struct weft__bytes *provenance);

#endif
