/* SPDX-License-Identifier: Apache-2.0 */
/* The client library is asked for files below a directory: its file:// takes the same way as http://, without a
 * network. */
#include "unit/symbol/fixture.h"
#include "weft_test.h"

static char cache[] = "/tmp/weft-debuginfod-XXXXXX";

static void serve(const char *url_path)
{
	char url[PATH_MAX + 16];

	snprintf(url, sizeof(url), "file://%s", url_path);
	setenv("DEBUGINFOD_URLS", url, 1);
	setenv("DEBUGINFOD_CACHE_PATH", cache, 1);
}

static void unserve(void)
{
	char command[128];

	unsetenv("DEBUGINFOD_URLS");
	snprintf(command, sizeof(command), "rm -rf %s", cache);
	CHECK_EQ(system(command), 0);
}

TEST(a_server_gives_the_debug_file)
{
	struct weft__symbolizer_opts opts = {.debug_dirs = "/nonexistent"};
	struct fixture f;

	REQUIRE(mkdtemp(cache));
	serve(fixture_path("served"));
	if (CHECK(fixture_open(&f, "stripped", &opts, FIXTURE_BUILD_ID)) &&
	    CHECK_EQ(fixture_resolve(&f, fixture_symbol("inline", "mark_leaf")), 3)) {
		CHECK_STR(f.frames.at[0].function, "leaf");
		CHECK_EQ(f.frames.at[2].line, 304);
	}
	fixture_close(&f);
	unserve();
}

TEST(a_server_gives_the_program_too)
{
	struct weft__symbolizer_opts opts = {.root = "/nonexistent", .debug_dirs = "/nonexistent"};
	struct fixture f;

	serve(fixture_path("served"));
	if (CHECK(fixture_open(&f, "stripped", &opts, FIXTURE_BUILD_ID)))
		CHECK_EQ(fixture_resolve(&f, fixture_symbol("inline", "mark_leaf")), 3);
	fixture_close(&f);
	unserve();
}

TEST(without_urls_nobody_is_asked)
{
	struct weft__symbolizer_opts opts = {.debug_dirs = "/nonexistent"};
	struct fixture f;

	unsetenv("DEBUGINFOD_URLS");
	if (CHECK(fixture_open(&f, "stripped", &opts, FIXTURE_BUILD_ID)))
		CHECK_EQ(fixture_resolve(&f, fixture_symbol("inline", "mark_leaf")), 1);
	fixture_close(&f);
}
