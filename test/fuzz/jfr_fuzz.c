/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a Flight Recorder file: all chunks, events and stacks. */
#include <stdint.h>
#include <stdlib.h>

#include "jfr/jfr.h"

static int take(void *data, const struct weft__jfr_event *event)
{
	const struct weft__jfr *jfr = data;
	struct weft__buf names = {0};
	size_t i, sum = 0;

	if (event->kind >= WEFT__JFR_N_KINDS)
		abort();
	for (i = 0; i < event->data.n; i++)
		sum += event->data.at[i];
	for (i = 0; i < event->name.n; i++)
		sum += event->name.at[i];
	if (weft__jfr_stack(jfr, event->stack, &names) && names.n && names.bytes[names.n - 1] != 0)
		abort();
	weft__buf_free(&names);
	return sum == SIZE_MAX; /* never: so that the bytes are read */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct weft_error err = {0};
	struct weft__jfr jfr;
	int r;

	weft__jfr_init(&jfr, data, size);
	while ((r = weft__jfr_chunk(&jfr, &err)) > 0)
		weft__jfr_events(&jfr, take, &jfr, &err);
	if (r < 0 && !err.msg[0])
		abort();
	weft__jfr_fini(&jfr);
	return 0;
}
