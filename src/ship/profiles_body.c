/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies of requests that carry a profile. */
#include <stdio.h>
#include <string.h>

#include "ship/profiles.h"
#include "weft/version.h"

/* {"name":"...","value":"..."}, with a comma before it. Names of labels are letters, digits and '_' there. */
static void put_label(const char *key, const char *value, void *data)
{
	struct weft__buf *to = data;
	char name[100];
	size_t i;

	if (!*value)
		return;
	for (i = 0; key[i] && i + 1 < sizeof(name); i++)
		name[i] =
			strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", key[i]) ? key[i] : '_';
	name[i] = 0;
	weft__put_text(to, ",{\"name\":");
	weft__put_json(to, name);
	weft__put_text(to, ",\"value\":");
	weft__put_json(to, value);
	weft__put_text(to, "}");
}

static void put_labels(struct weft__buf *to, const struct weft__parcel *parcel, const struct weft__profile_tags *tags,
		       const char *service)
{
	weft__put_text(to, "[{\"name\":\"__name__\",\"value\":\"process_cpu\"}");
	put_label(service, tags->service, to);
	put_label("host", tags->host, to);
	put_label("pid", tags->pid, to);
	put_label("env", tags->env, to);
	put_label("version", tags->version, to);
	weft__profile_labels(parcel, put_label, to);
	weft__put_text(to, "]");
}

/* A JSON body of push.v1.PusherService/Push. The id is of the segment, so the same profile has it again. */
void weft__body_pyroscope(struct weft__buf *to, const struct weft__parcel *parcel, const struct weft__bytes *pprof)
{
	struct weft__profile_tags tags;

	weft__profile_tags(parcel, &tags);
	weft__put_text(to, "{\"series\":[{\"labels\":");
	put_labels(to, parcel, &tags, "service_name");
	weft__put_text(to, ",\"samples\":[{\"ID\":");
	weft__put_json(to, tags.runtime_id);
	weft__put_text(to, ",\"rawProfile\":\"");
	weft__put_base64(to, pprof->at, pprof->n);
	weft__put_text(to, "\"}]}]}");
}

void weft__body_parca(struct weft__buf *to, const struct weft__parcel *parcel, const struct weft__bytes *pprof)
{
	struct weft__profile_tags tags;

	weft__profile_tags(parcel, &tags);
	weft__put_text(to, "{\"series\":[{\"labels\":{\"labels\":");
	put_labels(to, parcel, &tags, "service_name");
	weft__put_text(to, "},\"samples\":[{\"raw_profile\":\"");
	weft__put_base64(to, pprof->at, pprof->n);
	weft__put_text(to, "\"}]}],\"normalized\":true}");
}

/* key:value, with a comma before it. Commas in values would begin another tag. */
static void put_tag(const char *key, const char *value, void *data)
{
	struct weft__buf *to = data;
	char text[600];
	char *at;

	if (!*value)
		return;
	snprintf(text, sizeof(text), ",%.100s:%.400s", key, value);
	for (at = text + 1; (at = strchr(at, ','));)
		*at = '_';
	weft__put_text(to, text);
}

static void put_event(struct weft__buf *to, const struct weft__parcel *parcel, const struct weft__bytes *pprof,
		      int has_provenance)
{
	struct weft__profile_tags tags;
	struct weft__buf list = {0};

	weft__profile_tags(parcel, &tags);
	weft__put_text(&list, "language:native,runtime:native,profiler_version:" WEFT_VERSION_STRING);
	put_tag("service", tags.service, &list);
	put_tag("env", tags.env, &list);
	put_tag("version", tags.version, &list);
	put_tag("host", tags.host, &list);
	put_tag("process_id", tags.pid, &list);
	put_tag("runtime-id", tags.runtime_id, &list);
	put_tag("profile_seq", tags.sequence, &list);
	weft__profile_labels(parcel, put_tag, &list);
	weft__buf_u8(&list, 0);
	weft__put_text(to, "{\"attachments\":[\"profile.pprof\"");
	weft__put_text(to, has_provenance ? ",\"code-provenance.json\"],\"tags_profiler\":" : "],\"tags_profiler\":");
	weft__put_json(to, list.oom ? "" : (const char *)list.bytes);
	weft__buf_free(&list);
	weft__put_text(to, ",\"start\":\"");
	weft__put_time(to, pprof->start_unix_ns);
	weft__put_text(to, "\",\"end\":\"");
	weft__put_time(to, pprof->end_unix_ns);
	weft__put_text(to, "\",\"family\":\"native\",\"version\":\"4\"}");
}

static void put_part(struct weft__buf *to, const char *name, const char *file, const char *type)
{
	char head[300];

	snprintf(head, sizeof(head),
		 "--" DATADOG_BOUNDARY "\r\nContent-Disposition: form-data; name=\"%s\"; filename=\"%s\"\r\n"
		 "Content-Type: %s\r\n\r\n",
		 name, file, type);
	weft__put_text(to, head);
}

void weft__body_datadog(struct weft__buf *to, const struct weft__parcel *parcel, const struct weft__bytes *pprof,
			const struct weft__bytes *provenance)
{
	put_part(to, "event", "event.json", "application/json");
	put_event(to, parcel, pprof, provenance->n > 0);
	weft__put_text(to, "\r\n");
	put_part(to, "profile.pprof", "profile.pprof", "application/octet-stream");
	weft__buf_put(to, pprof->at, pprof->n);
	weft__put_text(to, "\r\n");
	if (provenance->n) {
		put_part(to, "code-provenance.json", "code-provenance.json", "application/json");
		weft__buf_put(to, provenance->at, provenance->n);
		weft__put_text(to, "\r\n");
	}
	weft__put_text(to, "--" DATADOG_BOUNDARY "--\r\n");
}
