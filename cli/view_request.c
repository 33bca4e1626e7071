/* SPDX-License-Identifier: Apache-2.0 */
/* Requests, judged. A page of another site can make a browser send requests to 127.0.0.1, under its own name when it
 * rebinds that name; it can neither know the token nor say a Host or Origin that is ours. */
#include <stdio.h>
#include <string.h>

#include "view.h"

#define HTTP_PORT 80

/* Takes as long for a token that is nearly right as for any other. */
static bool same_token(const char *path, const char *token)
{
	unsigned differs = 0;
	size_t i, n = strnlen(path, VIEW_TOKEN);

	for (i = 0; i < VIEW_TOKEN; i++)
		differs |= (unsigned char)(i < n ? path[i] : 0) ^ (unsigned char)token[i];
	return differs == 0;
}

/* A browser leaves out the port that HTTP has anyway. */
static bool is_one_of(const char *value, const char *before, unsigned port)
{
	static const char *const names[] = {"127.0.0.1", "localhost"};
	char wanted[64];
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(wanted, sizeof(wanted), "%s%s:%u", before, names[i], port);
		if (strcmp(value, wanted) == 0)
			return true;
		if (port == HTTP_PORT) {
			*strrchr(wanted, ':') = 0;
			if (strcmp(value, wanted) == 0)
				return true;
		}
	}
	return false;
}

enum view_verdict view_request_judge(const struct view_request *request, const char *token, unsigned port,
				     const char **rest)
{
	const char *path = request->path;

	if (!request->host || !is_one_of(request->host, "", port))
		return VIEW_BAD_HOST;
	if (request->origin && !is_one_of(request->origin, "http://", port))
		return VIEW_BAD_ORIGIN;
	if (path[0] != '/' || !same_token(path + 1, token) || path[1 + VIEW_TOKEN] != '/')
		return VIEW_BAD_TOKEN;
	*rest = path + VIEW_TOKEN + 2;
	return VIEW_ALLOWED;
}

/* Digits up to `end`; false when there are none, or too many. */
static bool number(const char **at, uint64_t *ret)
{
	const char *begin = *at;

	for (*ret = 0; **at >= '0' && **at <= '9' && *at - begin < 18; (*at)++)
		*ret = *ret * 10 + (uint64_t)(**at - '0');
	return *at > begin && !(**at >= '0' && **at <= '9');
}

int view_request_range(const char *range, uint64_t size, uint64_t *from, uint64_t *bytes)
{
	static const char unit[] = "bytes=";
	uint64_t first, last = size ? size - 1 : 0;

	if (!range || strncmp(range, unit, sizeof(unit) - 1) != 0)
		return 0;
	range += sizeof(unit) - 1;
	if (*range == '-') {
		range++;
		if (!number(&range, &first) || *range)
			return 0;
		if (first == 0 || size == 0)
			return -1;
		*from = first < size ? size - first : 0;
		*bytes = size - *from;
		return 1;
	}
	if (!number(&range, &first) || *range++ != '-')
		return 0;
	if (*range && (!number(&range, &last) || *range || last < first))
		return 0;
	if (first >= size)
		return -1;
	*from = first;
	*bytes = (last < size ? last : size - 1) - first + 1;
	return 1;
}

bool view_request_file(const char *rest, uint64_t *index)
{
	static const char before[] = "file/";

	if (strncmp(rest, before, sizeof(before) - 1) != 0)
		return false;
	rest += sizeof(before) - 1;
	return number(&rest, index) && !*rest;
}
