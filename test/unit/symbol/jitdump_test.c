/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol/jitdump.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "symbol/symbol.h"
#include "unit/symbol/jitdump.h"
#include "weft_test.h"

static struct weft__jitcode parsed(const struct weft__buf *buf)
{
	struct weft__jitcode code = {0};

	CHECK_EQ(weft__jitdump_parse(&code, buf->bytes, buf->n), 0);
	weft__jitcode_seal(&code);
	return code;
}

static void check_at(const struct weft__jitcode *code, uint64_t address, uint64_t time, const char *want)
{
	const struct weft__jitcode_piece *piece = weft__jitcode_get(code, address, time);

	CHECK_STR(piece ? piece->name : "", want);
}

TEST(code_is_there_from_its_load_on)
{
	struct weft__buf buf = {0};
	struct weft__jitcode code;

	jit_header(&buf, 0);
	jit_load(&buf, 100, 0x1000, 32, 1, "first");
	jit_load(&buf, 200, 0x1000, 32, 2, "second");
	code = parsed(&buf);
	check_at(&code, 0x1010, 50, "");
	check_at(&code, 0x1010, 150, "first");
	check_at(&code, 0x1010, 250, "second");
	check_at(&code, 0x1010, 0, "second");
	check_at(&code, 0x1020, 250, "");
	weft__jitcode_fini(&code);
	weft__buf_free(&buf);
}

TEST(code_moves_with_its_lines)
{
	struct weft__buf buf = {0};
	struct weft__jitcode code;
	const struct weft__jitcode_piece *piece;
	const struct weft__jitcode_line *line;

	jit_header(&buf, 0);
	jit_lines(&buf, 0x1000, "app.js", 10, 20);
	jit_load(&buf, 100, 0x1000, 32, 1, "f");
	jit_move(&buf, 300, 0x1000, 0x8000, 32, 1);
	code = parsed(&buf);
	check_at(&code, 0x1010, 200, "f");
	check_at(&code, 0x1010, 400, "");
	check_at(&code, 0x8010, 200, "");
	check_at(&code, 0x8010, 400, "f");
	piece = weft__jitcode_get(&code, 0x8009, 400);
	REQUIRE(piece);
	line = weft__jitcode_line(&code, piece, 0x8009);
	REQUIRE(line);
	CHECK_STR(line->file, "app.js");
	CHECK_EQ(line->line, 20);
	CHECK_EQ(weft__jitcode_line(&code, piece, 0x8003)->line, 10);
	weft__jitcode_fini(&code);
	weft__buf_free(&buf);
}

TEST(times_of_a_counter_are_not_believed)
{
	struct weft__buf buf = {0};
	struct weft__jitcode code;

	jit_header(&buf, 1);
	jit_load(&buf, 100, 0x1000, 32, 1, "f");
	code = parsed(&buf);
	check_at(&code, 0x1010, 50, "f");
	weft__jitcode_fini(&code);
	weft__buf_free(&buf);
}

TEST(a_cut_dump_gives_what_is_whole)
{
	struct weft__buf buf = {0};
	size_t whole;

	jit_header(&buf, 0);
	jit_lines(&buf, 0x1000, "app.js", 10, 20);
	jit_load(&buf, 100, 0x1000, 32, 1, "f");
	whole = buf.n;
	jit_load(&buf, 100, 0x2000, 32, 1, "g");
	for (size_t n = 0; n < buf.n; n++) {
		struct weft__jitcode code = {0};
		void *copy = malloc(n + 1); /* its own, so that ASan sees reads past the end */

		memcpy(copy, buf.bytes, n);
		CHECK_EQ(weft__jitdump_parse(&code, copy, n), n < 40 ? -EINVAL : 0);
		CHECK_EQ(code.n, n >= whole);
		weft__jitcode_fini(&code);
		free(copy);
	}
	weft__buf_free(&buf);
}

static void write_file(const char *dir, const char *name, const void *bytes, size_t n)
{
	char path[256];
	FILE *out;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	out = fopen(path, "w");
	CHECK(out && fwrite(bytes, 1, n, out) == n);
	if (out)
		fclose(out);
}

TEST(anonymous_code_is_looked_up_in_the_files_of_its_process)
{
	char dir[] = "/tmp/weft-jit-XXXXXX", command[64];
	struct weft__symbolizer_opts opts = {.jit_dir = dir};
	struct weft__symbol_module module = {.path = "//anon", .pid = 1234, .start = 0x1000, .end = 0x9000};
	struct weft__symbol_place place = {0};
	struct weft__symbol_frames frames;
	struct weft__symbolizer *sym;
	struct weft__buf buf = {0};

	REQUIRE(mkdtemp(dir));
	jit_header(&buf, 0);
	jit_lines(&buf, 0x1000, "app.js", 10, 20);
	jit_load(&buf, 100, 0x1000, 32, 1, "dumped");
	write_file(dir, "jit-1234.dump", buf.bytes, buf.n);
	write_file(dir, "perf-1234.map", "1000 10 hidden\n4000 10 _ZN3foo3barEv\n", 37);
	REQUIRE(weft__symbolizer_open(&sym, &opts, NULL) == 0);
	CHECK_EQ(weft__symbolizer_add(sym, &module, &place.module), 0);

	place.ip = 0x100a;
	place.time_ns = 50;
	CHECK_EQ(weft__symbolizer_resolve(sym, &place, &frames), 1);
	CHECK_STR(frames.at[0].function, "hidden");
	place.time_ns = 200;
	CHECK_EQ(weft__symbolizer_resolve(sym, &place, &frames), 1);
	CHECK_STR(frames.at[0].function, "dumped");
	CHECK_STR(frames.at[0].file, "app.js");
	CHECK_EQ(frames.at[0].line, 20);
	CHECK_EQ(frames.at[0].offset, 10);
	CHECK_STR(frames.source, "jit");
	place.ip = 0x4000;
	CHECK_EQ(weft__symbolizer_resolve(sym, &place, &frames), 1);
	CHECK_STR(frames.at[0].function, "foo::bar()");
	place.ip = 0x5000;
	CHECK_EQ(weft__symbolizer_resolve(sym, &place, &frames), 1);
	CHECK_STR(frames.source, "unknown");
	weft__symbolizer_close(sym);
	weft__buf_free(&buf);
	snprintf(command, sizeof(command), "rm -r %s", dir);
	CHECK_EQ(system(command), 0);
}

/* What the one function of process 1234 of that user is called, and why. */
static void check_named(const char *dir, uint32_t uid, const char *name, const char *why)
{
	struct weft__symbolizer_opts opts = {.jit_dir = dir};
	struct weft__symbol_module module = {.path = "", .pid = 1234, .uid = uid, .end = UINT64_MAX};
	struct weft__symbol_place place = {.ip = 0x1001};
	struct weft__symbol_frames frames;
	struct weft__symbolizer *sym;

	REQUIRE(weft__symbolizer_open(&sym, &opts, NULL) == 0);
	CHECK_EQ(weft__symbolizer_add(sym, &module, &place.module), 0);
	CHECK_EQ(weft__symbolizer_resolve(sym, &place, &frames), 1);
	CHECK_STR(frames.at[0].function, name);
	if (why)
		CHECK(strstr(weft__symbolizer_why(sym, place.module), why));
	weft__symbolizer_close(sym);
}

TEST(files_of_another_user_and_links_are_not_believed)
{
	char dir[] = "/tmp/weft-jit-XXXXXX", path[64], real[64], command[64];

	if (geteuid() != 0)
		SKIP("only root can make files of other users");
	REQUIRE(mkdtemp(dir));
	write_file(dir, "perf-1234.map", "1000 10 planted\n", 16);
	snprintf(path, sizeof(path), "%s/perf-1234.map", dir);
	snprintf(real, sizeof(real), "%s/elsewhere", dir);
	check_named(dir, 1000, "planted", NULL); /* root's */
	CHECK_EQ(chown(path, 65534, 65534), 0);
	check_named(dir, 1000, "0x1001", "not believed");
	check_named(dir, 65534, "planted", NULL);
	CHECK_EQ(rename(path, real), 0);
	CHECK_EQ(symlink(real, path), 0);
	check_named(dir, 65534, "0x1001", "not believed");
	snprintf(command, sizeof(command), "rm -r %s", dir);
	CHECK_EQ(system(command), 0);
}

TEST(a_dump_elsewhere_can_be_named)
{
	char path[] = "/tmp/weft-dump-XXXXXX";
	struct weft__symbolizer_opts opts = {.jit_dir = "/nonexistent"};
	struct weft__symbol_module module = {.path = "", .pid = 7, .end = UINT64_MAX};
	struct weft__symbol_place place = {.ip = 0x1001};
	struct weft__symbol_frames frames;
	struct weft__symbolizer *sym;
	struct weft__buf buf = {0};
	int fd = mkstemp(path);

	REQUIRE(fd >= 0);
	jit_header(&buf, 0);
	jit_load(&buf, 100, 0x1000, 32, 1, "named");
	CHECK_EQ(write(fd, buf.bytes, buf.n), buf.n);
	close(fd);
	REQUIRE(weft__symbolizer_open(&sym, &opts, NULL) == 0);
	CHECK_EQ(weft__symbolizer_add(sym, &module, &place.module), 0);
	CHECK_EQ(weft__symbolizer_resolve(sym, &place, &frames), 1);
	CHECK_STR(frames.at[0].function, "0x1001");
	CHECK(strstr(weft__symbolizer_why(sym, place.module), "no perf-7.map"));
	CHECK_EQ(weft__symbolizer_add_jitdump(sym, 7, path), 0);
	CHECK_EQ(weft__symbolizer_add_jitdump(sym, 8, "/nonexistent"), -ENOENT);
	place.time_ns = 200;
	place.ip = 0x1002;
	CHECK_EQ(weft__symbolizer_resolve(sym, &place, &frames), 1);
	CHECK_STR(frames.at[0].function, "named");
	weft__symbolizer_close(sym);
	weft__buf_free(&buf);
	unlink(path);
}
