/* SPDX-License-Identifier: Apache-2.0 */
#include "ship/key.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define PART_BYTES 128

void weft__key_part(const char *text, char *to, size_t bytes)
{
	static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.";
	size_t i;

	for (i = 0; text[i] && i + 1 < bytes; i++)
		to[i] = strchr(plain, text[i]) && !(text[i] == '.' && !i) ? text[i] : '_';
	to[i] = 0;
	if (!i)
		snprintf(to, bytes, "unknown");
}

static void fact_part(const struct weft__parcel *parcel, const char *key, char to[PART_BYTES])
{
	const char *value = weft_segment_fact(parcel->segment, key);

	weft__key_part(value ? value : "", to, PART_BYTES);
}

int weft__key(const struct weft__parcel *parcel, const char *prefix, char *to, size_t bytes)
{
	time_t seconds = (time_t)(weft_segment_info(parcel->segment)->start_real_ns / 1000000000u);
	char service[PART_BYTES], host[PART_BYTES], pid[PART_BYTES], name[256], date[16];
	size_t n = strlen(prefix);
	struct tm tm;
	int r;

	while (*prefix == '/')
		prefix++, n--;
	while (n && prefix[n - 1] == '/')
		n--;
	if (parcel->key) {
		r = snprintf(to, bytes, "%.*s%s%s", (int)n, prefix, n ? "/" : "", parcel->key);
		return r < 0 || (size_t)r >= bytes ? -ENAMETOOLONG : 0;
	}
	fact_part(parcel, "service.name", service);
	fact_part(parcel, "host.name", host);
	fact_part(parcel, "process.pid", pid);
	weft__key_part(parcel->name, name, sizeof(name));
	gmtime_r(&seconds, &tm);
	strftime(date, sizeof(date), "%Y-%m-%d", &tm);
	r = snprintf(to, bytes, "%.*s%s%s/%s/%s/%s/%s", (int)n, prefix, n ? "/" : "", service, date, host, pid, name);
	return r < 0 || (size_t)r >= bytes ? -ENAMETOOLONG : 0;
}
