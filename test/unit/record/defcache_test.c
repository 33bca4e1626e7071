/* SPDX-License-Identifier: Apache-2.0 */
/* Which definitions of a piece a dump has already. */
#include "record/collect/defcache.h"

#include "segment/batch.h"
#include "segment/format.h"
#include "weft_test.h"

static uint32_t news(struct weft__defcache *r, struct weft__defs *defs)
{
	CHECK_EQ(weft__defcache_news(r, defs->out.bytes, defs->out.n, 0), 0);
	return r->news.n;
}

TEST(what_was_said_before_is_no_news)
{
	struct weft__defcache r = {0};
	struct weft__defs defs = {0};

	weft__defs_string(&defs, 1, "one");
	weft__defs_string(&defs, 2, "one");
	weft__defs_name(&defs, 1, "one");
	weft__defs_fact(&defs, "a", "1");
	weft__defs_fact(&defs, "b", "1");
	CHECK_EQ(news(&r, &defs), 5);
	CHECK_EQ(news(&r, &defs), 0);
	weft__defcache_forget(&r);
	CHECK_EQ(news(&r, &defs), 5);
	weft__defs_fini(&defs);
	weft__defcache_fini(&r);
}

/* The last word must stay the last. */
TEST(what_changes_and_changes_back_is_recorded_each_time)
{
	static const char *const values[] = {"1", "2", "1", "1", "2"};
	static const uint32_t fresh[] = {1, 1, 1, 0, 1};
	struct weft__defcache r = {0};
	struct weft__defs defs = {0};
	int i;

	for (i = 0; i < 5; i++) {
		weft__defs_clear(&defs);
		weft__defs_fact(&defs, "a", values[i]);
		CHECK_EQ(news(&r, &defs), fresh[i]);
	}
	weft__defs_fini(&defs);
	weft__defcache_fini(&r);
}

TEST(losses_and_clocks_add_up)
{
	struct weft_loss loss = {.reason = WEFT_LOSS_RING_FULL, .thread = 1, .count = 3, .from_ns = 5, .to_ns = 6};
	struct weft_clock clock = {.mono_ns = 1, .real_ns = 2};
	struct weft__defcache r = {0};
	struct weft__defs defs = {0};

	weft__defs_loss(&defs, &loss);
	weft__defs_clock(&defs, &clock);
	CHECK_EQ(news(&r, &defs), 2);
	CHECK_EQ(news(&r, &defs), 2);
	weft__defs_fini(&defs);
	weft__defcache_fini(&r);
}

TEST(definitions_that_are_many_and_compressed_are_written_once)
{
	struct weft__defcache r = {0};
	struct weft__defs defs = {0};
	struct weft__encoder *encoder;
	struct weft__buf squeezed = {0};
	uint32_t i;

	REQUIRE(weft__encoder_open(&encoder, 1) == 0);
	for (i = 1; i <= 50000; i++)
		weft__defs_string(&defs, i, "some text that is the same");
	REQUIRE(weft__encoder_squeeze(encoder, &defs.out, &squeezed) == 1);
	CHECK_EQ(weft__defcache_news(&r, squeezed.bytes, squeezed.n, BLOCK_FLAG_ZSTD), 0);
	CHECK_EQ(r.news.n, 50000);
	CHECK_EQ(r.news.out.n, defs.out.n);
	CHECK_EQ(weft__defcache_news(&r, squeezed.bytes, squeezed.n, BLOCK_FLAG_ZSTD), 0);
	CHECK_EQ(r.news.n, 0);
	squeezed.bytes[squeezed.n / 2] ^= 1;
	CHECK(weft__defcache_news(&r, squeezed.bytes, squeezed.n / 2, BLOCK_FLAG_ZSTD) < 0);
	weft__encoder_close(encoder);
	weft__buf_free(&squeezed);
	weft__defs_fini(&defs);
	weft__defcache_fini(&r);
}
