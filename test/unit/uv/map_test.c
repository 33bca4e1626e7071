/* SPDX-License-Identifier: Apache-2.0 */
/* The map of libweft-uv, against an array. */
#include "../../../bindings/uv/map.c" /* NOLINT(bugprone-suspicious-include) */

#include "weft_test.h"

#define KEYS 512

static uint64_t key_of(size_t i)
{
	return 0x7f0000001000 + i / 3 * 0x40 + i % 3; /* as of handles: close to each other, three callbacks each */
}

TEST(an_empty_map_has_nothing)
{
	struct weft__uv_map map = {0};

	CHECK(weft__uv_map_get(&map, 8) == NULL);
	weft__uv_map_fini(&map);
}

TEST(the_map_has_what_was_added_and_not_deleted)
{
	struct weft__uv_map map = {0};
	uint64_t there[KEYS] = {0}, random = 1, n = 0;
	size_t i, k;

	for (i = 0; i < 50000; i++) {
		random = random * 6364136223846793005u + 1442695040888963407u;
		k = (size_t)(random >> 33) % KEYS;
		if (random >> 63) {
			const struct weft__uv_entry *entry = weft__uv_map_get(&map, key_of(k));

			CHECK((entry != NULL) == (there[k] != 0));
			if (entry)
				weft__uv_map_del(&map, entry);
			n -= there[k] != 0;
			there[k] = 0;
		} else {
			struct weft__uv_entry *entry = weft__uv_map_add(&map, key_of(k));

			CHECK(entry != NULL && entry->task == there[k]);
			n += there[k] == 0;
			entry->task = there[k] = i + 1;
		}
		CHECK(map.n == n);
	}
	for (k = 0; k < KEYS; k++) {
		const struct weft__uv_entry *entry = weft__uv_map_get(&map, key_of(k));

		CHECK(there[k] ? entry && entry->task == there[k] : entry == NULL);
	}
	weft__uv_map_fini(&map);
}
