/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/map.h"

#include <stdlib.h>

#include "weft_test.h"

TEST(an_empty_map_has_nothing)
{
	struct weft__map map = {0};

	CHECK_EQ(weft__map_get(&map, 0), WEFT__MAP_NONE);
	weft__map_del(&map, 0);
	weft__map_fini(&map);
}

TEST(putting_a_key_again_replaces_its_value)
{
	struct weft__map map = {0};

	CHECK_EQ(weft__map_put(&map, 7, 1), 0);
	CHECK_EQ(weft__map_put(&map, 7, 2), 0);
	CHECK_EQ(weft__map_get(&map, 7), 2);
	CHECK_EQ(map.n, 1);
	weft__map_fini(&map);
}

/* Against a plain array, through many puts and deletions of few keys, so that probes run into each other. */
TEST(a_map_behaves_as_an_array_does)
{
	enum { KEYS = 600 };
	static uint32_t truth[KEYS];
	struct weft__map map = {0};
	uint32_t x = 1, i, wrong = 0;

	memset(truth, 0xff, sizeof(truth));
	for (i = 0; i < 200000; i++) {
		uint32_t key;

		x = x * 1664525u + 1013904223u;
		key = (x >> 8) % KEYS;
		if (x >> 31) {
			truth[key] = i;
			CHECK_EQ(weft__map_put(&map, (uint64_t)key << 20, i), 0);
		} else {
			truth[key] = WEFT__MAP_NONE;
			weft__map_del(&map, (uint64_t)key << 20);
		}
		key = (x >> 4) % KEYS;
		wrong += weft__map_get(&map, (uint64_t)key << 20) != truth[key];
	}
	CHECK_EQ(wrong, 0);
	for (i = 0; i < KEYS; i++)
		CHECK_EQ(weft__map_get(&map, (uint64_t)i << 20), truth[i]);
	weft__map_fini(&map);
}
