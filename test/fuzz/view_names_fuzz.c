/* SPDX-License-Identifier: Apache-2.0 */
/* Names beside the segments, as the page of weft view reads them. */
#include <stdlib.h>
#include <string.h>

#include "../../viewer/wasm/names.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct weft__recording one = {.id = {0xab}};
	struct weft__recordings list = {.all = &one, .n = 1, .cap = 1};
	char *text = malloc(size + 1);

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = 0;
	(void)view_names_read(&list, text);
	free(text);
	weft__frames_fini(&one.frames);
	return 0;
}
