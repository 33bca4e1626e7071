/* SPDX-License-Identifier: Apache-2.0 */
/* Collapsed stacks: "outermost;...;leaf VALUE" in each line, for flamegraph.pl, speedscope and grep. There is one value
 * only: the first time among those that were asked for. Rows that differ in labels are put together. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "export/aggregate.h"
#include "export/proto.h"

/* Times say more than counts. */
static size_t value_of(const struct weft__aggregate *agg)
{
	uint32_t values = weft__aggregate_values(agg);
	size_t i;

	for (i = 0; i < WEFT__N_VALUES; i++)
		if (values >> i & 1 && strcmp(weft__value_names[i].unit, "nanoseconds") == 0)
			return i;
	return WEFT__VALUE_CPU_NS;
}

static void put_name(struct weft__buf *out, const char *name)
{
	for (; *name; name++) /* what separates frames and lines */
		weft__buf_u8(out, (uint8_t)(*name == ';' ? ':' : *name == '\n' || *name == '\r' ? ' ' : *name));
}

static void put_stack(const struct weft__aggregate *agg, uint32_t stack, struct weft__buf *out)
{
	size_t n, i;
	const uint32_t *frames = weft__sums_frames(&agg->sums, stack, &n);
	const char *between = "";

	for (i = n; i-- > 0;) {
		const struct weft__place *place = &agg->places[frames[i]];
		uint32_t j;

		for (j = place->n; j-- > 0;) {
			struct weft__place_function function;

			memcpy(&function, weft__keys_at(&agg->functions, agg->lines[place->first + j].function, NULL),
			       sizeof(function));
			weft__buf_put(out, between, strlen(between));
			put_name(out, weft__aggregate_text(agg, function.name));
			between = ";";
		}
	}
}

static void put_value(struct weft__buf *out, int64_t value)
{
	char text[32];

	weft__buf_put(out, text, (size_t)snprintf(text, sizeof(text), " %" PRId64 "\n", value));
}

void weft__folded_encode(const struct weft__aggregate *agg, struct weft__buf *out)
{
	const struct weft__sums *sums = &agg->sums;
	size_t value = value_of(agg), i;
	struct weft__sums by_stack;
	uint32_t stack, none;

	weft__sums_init(&by_stack, 1, UINT64_MAX);
	for (i = 0; i < sums->n_rows; i++) {
		const int64_t *of = &sums->values[i * sums->n_values + value];

		stack = sums->rows[i].stack;
		if (*of && (weft__sums_labels(&by_stack, NULL, 0, &none) < 0 ||
			    weft__sums_add(&by_stack, stack, none, of) < 0))
			out->oom = 1;
	}
	for (i = 0; i < by_stack.n_rows; i++) {
		put_stack(agg, by_stack.rows[i].stack, out);
		put_value(out, by_stack.values[i]);
	}
	if (sums->dropped[value]) {
		put_name(out, "[dropped: too many stacks]");
		put_value(out, sums->dropped[value]);
	}
	weft__sums_fini(&by_stack);
}
