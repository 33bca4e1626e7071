/* SPDX-License-Identifier: Apache-2.0 */
#include "record/collect/code.h"

#include <errno.h>
#include <string.h>

#include "base/alloc.h"

int weft__code_add(struct weft__code *code, const struct weft__code_range *range)
{
	struct weft__code_range *grown;
	size_t i, n = 0;

	for (i = 0; i < code->n; i++) /* what it takes the place of goes */
		if (code->ranges[i].end <= range->start || code->ranges[i].start >= range->end)
			code->ranges[n++] = code->ranges[i];
	code->n = n;
	grown = weft__grow(code->ranges, &code->cap, code->n, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	code->ranges = grown;
	for (i = code->n; i > 0 && grown[i - 1].start > range->start; i--)
		grown[i] = grown[i - 1];
	grown[i] = *range;
	code->n++;
	return 0;
}

void weft__code_fini(struct weft__code *code)
{
	weft__free(code->ranges);
	memset(code, 0, sizeof(*code));
}

static const struct weft__code_range *find(const struct weft__code *code, uint64_t address)
{
	size_t low = 0, high = code->n;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (code->ranges[middle].end <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low < code->n && code->ranges[low].start <= address ? &code->ranges[low] : NULL;
}

void weft__code_frames(const struct weft__code *code, const uint64_t *addresses, uint32_t n, int kernel,
		       struct weft_frame *frames)
{
	uint32_t i;

	memset(frames, 0, n * sizeof(*frames));
	for (i = 0; i < n; i++) {
		const struct weft__code_range *range = kernel ? NULL : find(code, addresses[i]);

		frames[i].module = range ? range->module : kernel ? code->kernel : 0;
		frames[i].offset = addresses[i] - (range ? range->start : 0);
	}
}
