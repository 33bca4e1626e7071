/* SPDX-License-Identifier: Apache-2.0 */
#include "ship/profiles.h"

#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "ship/crypt.h"

const struct weft_export_plugin *weft__profiles_encoders;

/* It is beside the file that this function is in. */
static void *open_library(void)
{
	char path[4096];
	const char *slash;
	Dl_info info;

	if (dladdr((void *)(uintptr_t)open_library, &info) && info.dli_fname &&
	    (slash = strrchr(info.dli_fname, '/'))) {
		snprintf(path, sizeof(path), "%.*s/" WEFT_EXPORT_FILE, (int)(slash - info.dli_fname), info.dli_fname);
		if (access(path, R_OK) == 0)
			return dlopen(path, RTLD_NOW | RTLD_LOCAL);
	}
	return dlopen(WEFT_EXPORT_FILE, RTLD_NOW | RTLD_LOCAL);
}

const struct weft_export_plugin *weft__profiles_open(struct weft_error *err)
{
	const struct weft_export_plugin *found = weft__profiles_encoders;
	weft_export_plugin_fn *entry = NULL;
	void *handle, *symbol;

	if (found)
		return found;
	handle = open_library();
	symbol = handle ? dlsym(handle, WEFT_EXPORT_ENTRY) : NULL;
	memcpy(&entry, &symbol, sizeof(symbol));
	found = entry ? entry() : NULL;
	if (found && found->abi == WEFT_EXPORT_ABI && found->opts_bytes == sizeof(struct weft__export_opts))
		return found;
	weft__fail(err, -ENOENT,
		   handle ? "%s is not of this version of weft"
			  : "%s cannot be opened; install it beside libweft.so, or run weft push",
		   WEFT_EXPORT_FILE);
	return NULL;
}

static void take_fact(const struct weft__parcel *parcel, const char *key, const char *variable, char *to, size_t bytes)
{
	const char *value = weft_segment_fact(parcel->segment, key);

	if ((!value || !*value) && variable)
		value = getenv(variable);
	snprintf(to, bytes, "%s", value ? value : "");
}

void weft__profile_tags(const struct weft__parcel *parcel, struct weft__profile_tags *ret)
{
	const struct weft_segment_info *info = weft_segment_info(parcel->segment);
	char hex[33];

	take_fact(parcel, "service.name", NULL, ret->service, sizeof(ret->service));
	take_fact(parcel, "host.name", NULL, ret->host, sizeof(ret->host));
	take_fact(parcel, "process.pid", NULL, ret->pid, sizeof(ret->pid));
	take_fact(parcel, "label.env", "DD_ENV", ret->env, sizeof(ret->env));
	take_fact(parcel, "label.version", "DD_VERSION", ret->version, sizeof(ret->version));
	weft__hex(info->recording, 16, hex);
	snprintf(ret->runtime_id, sizeof(ret->runtime_id), "%.8s-%.4s-%.4s-%.4s-%.12s", hex, hex + 8, hex + 12,
		 hex + 16, hex + 20);
	snprintf(ret->sequence, sizeof(ret->sequence), "%" PRIu64, info->sequence);
}

/* Facts that tell machines and services apart. Not all: stores have limits (Pyroscope takes 30 labels). */
static int is_of_machine(const char *key)
{
	static const char *const known[] = {"cloud.provider",
					    "cloud.region",
					    "cloud.availability_zone",
					    "host.id",
					    "host.type",
					    "k8s.namespace.name",
					    "k8s.pod.name",
					    "k8s.node.name",
					    "k8s.container.name",
					    "aws.ecs.cluster.arn",
					    "aws.ecs.task.arn",
					    "aws.ecs.task.family"};
	size_t i;

	for (i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (!strcmp(key, known[i]))
			return 1;
	return 0;
}

void weft__profile_labels(const struct weft__parcel *parcel, void (*fn)(const char *key, const char *value, void *data),
			  void *data)
{
	const struct weft_fact *facts;
	char label[64];
	size_t n, i;

	facts = weft_segment_facts(parcel->segment, &n);
	for (i = 0; i < n; i++)
		if (!strncmp(facts[i].key, "label.", 6) && strcmp(facts[i].key + 6, "env") != 0 &&
		    strcmp(facts[i].key + 6, "version") != 0)
			fn(facts[i].key + 6, facts[i].value, data);
	for (i = 0; i < n; i++) {
		snprintf(label, sizeof(label), "label.%.50s", facts[i].key);
		if (is_of_machine(facts[i].key) && !weft_segment_fact(parcel->segment, label))
			fn(facts[i].key, facts[i].value, data);
	}
}

void weft__put_text(struct weft__buf *to, const char *text)
{
	weft__buf_put(to, text, strlen(text));
}

/* What is not ASCII is left as it is: facts are UTF-8, or nobody can read them anyway. */
void weft__put_json(struct weft__buf *to, const char *text)
{
	weft__buf_u8(to, '"');
	for (; *text; text++) {
		char code[8];

		if (*text == '"' || *text == '\\')
			weft__buf_u8(to, '\\');
		if ((unsigned char)*text < ' ') {
			snprintf(code, sizeof(code), "\\u%04x", (unsigned)*text);
			weft__put_text(to, code);
		} else {
			weft__buf_u8(to, (uint8_t)*text);
		}
	}
	weft__buf_u8(to, '"');
}

void weft__put_base64(struct weft__buf *to, const uint8_t *bytes, size_t n)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	size_t i;

	for (i = 0; i < n; i += 3) {
		uint32_t v = (uint32_t)bytes[i] << 16 | (i + 1 < n ? (uint32_t)bytes[i + 1] << 8 : 0) |
			     (i + 2 < n ? bytes[i + 2] : 0);
		uint8_t four[4] = {(uint8_t)digits[v >> 18], (uint8_t)digits[v >> 12 & 63],
				   i + 1 < n ? (uint8_t)digits[v >> 6 & 63] : '=',
				   i + 2 < n ? (uint8_t)digits[v & 63] : '='};

		weft__buf_put(to, four, 4);
	}
}

void weft__put_time(struct weft__buf *to, uint64_t unix_ns)
{
	time_t seconds = (time_t)(unix_ns / 1000000000u);
	char text[48];
	struct tm tm;
	size_t n;

	gmtime_r(&seconds, &tm);
	n = strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(text + n, sizeof(text) - n, ".%09uZ", (unsigned)(unix_ns % 1000000000u));
	weft__put_text(to, text);
}
