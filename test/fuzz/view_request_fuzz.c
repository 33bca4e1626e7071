/* SPDX-License-Identifier: Apache-2.0 */
/* A request of weft view: four lines, path, Host, Origin and Range. None without the token is allowed, and a range lies
 * inside the file. */
#include "../../cli/view_request.c"

#include <stdlib.h>

#define TOKEN "0123456789abcdef0123456789abcdef"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1), *lines[4] = {0}, *at = text;
	struct view_request request;
	uint64_t from, bytes, index;
	const char *rest = NULL;
	size_t i;

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = 0;
	for (i = 0; i < 4; i++)
		lines[i] = at ? strsep(&at, "\n") : NULL;
	request = (struct view_request){lines[0], lines[1], lines[2]};
	if (view_request_judge(&request, TOKEN, 7000, &rest) == VIEW_ALLOWED) {
		if (strncmp(lines[0], "/" TOKEN "/", VIEW_TOKEN + 2) != 0 || rest != lines[0] + VIEW_TOKEN + 2)
			abort();
		(void)view_request_file(rest, &index);
	}
	if (view_request_range(lines[3], size, &from, &bytes) == 1 &&
	    (from >= size || bytes == 0 || bytes > size - from))
		abort();
	free(text);
	return 0;
}
