/* SPDX-License-Identifier: Apache-2.0 */
/* Tables from sections made by hand, from .debug_frame, without a header, and when memory runs out. */
#include <errno.h>

#include "oracle.h"
#include "weft/hooks.h"
#include "weft_test.h"

#if defined(__x86_64__)
#define AT 0x10000u /* where the section is */

struct section {
	uint8_t bytes[512];
	size_t n;
};

static void put32(struct section *s, uint32_t v)
{
	memcpy(s->bytes + s->n, &v, 4);
	s->n += 4;
}

static void put_bytes(struct section *s, const void *bytes, size_t n)
{
	memcpy(s->bytes + s->n, bytes, n);
	s->n += n;
}

static void entry_end(struct section *s, size_t begin)
{
	uint32_t n;

	while ((s->n - begin) % 4)
		s->bytes[s->n++] = 0;
	n = (uint32_t)(s->n - begin - 4);
	memcpy(s->bytes + begin, &n, 4);
}

/* "zR" with pc-relative pointers: CFA = rsp + 8, return address at CFA - 8. */
static void put_cie(struct section *s, const char *augmentation)
{
	static const uint8_t rest[] = {1, 0x78, 16, 1, 0x1b, 0x0c, 7, 8, 0x90, 1};
	size_t begin = s->n;

	put32(s, 0);
	put32(s, 0);
	s->bytes[s->n++] = 1;
	put_bytes(s, augmentation, strlen(augmentation) + 1);
	put_bytes(s, rest, sizeof(rest));
	entry_end(s, begin);
}

static void put_fde(struct section *s, uint32_t code, uint32_t bytes, const void *ops, size_t n)
{
	size_t begin = s->n;

	put32(s, 0);
	put32(s, (uint32_t)s->n);
	put32(s, code - (AT + (uint32_t)s->n));
	put32(s, bytes);
	s->bytes[s->n++] = 0;
	put_bytes(s, ops, n);
	entry_end(s, begin);
}

static struct weft__unwind_table *table_of(const struct section *s)
{
	struct weft__cfi_input in = {.bytes = s->bytes, .n = s->n, .vaddr = AT, .text_high = 0x100000};
	struct weft__unwind_table *table = NULL;

	return CHECK_EQ(weft__unwind_table_new(&table, &in, 1), 0) ? table : NULL;
}

static const struct weft__rule *rule_at(const struct weft__unwind_table *table, uint64_t code)
{
	return &table->rules[weft__unwind_table_find(table, code)];
}

TEST(a_prologue_has_a_rule_for_each_place)
{
	/* push %rbx; sub $64,%rsp; remembered; back to the start; and on */
	static const uint8_t ops[] = {0x41, 0x0e, 16, 0x83, 2, 0x44, 0x0e, 80, 0x0a, 0x50, 0x0e, 8, 0xc3, 0x41, 0x0b};
	struct section s = {.n = 0};
	struct weft__unwind_table *table;

	put_cie(&s, "zR");
	put_fde(&s, 0x2000, 64, ops, sizeof(ops));
	put32(&s, 0);
	table = table_of(&s);
	REQUIRE(table != NULL);
	CHECK_EQ(rule_at(table, 0x1fff)->kind, RULE_NONE);
	CHECK_EQ(rule_at(table, 0x2000)->cfa_off, 8);
	CHECK_EQ(rule_at(table, 0x2001)->cfa_off, 16);
	CHECK_EQ(rule_at(table, 0x2001)->saved[0], -2);
	CHECK_EQ(rule_at(table, 0x2004)->cfa_off, 16);
	CHECK_EQ(rule_at(table, 0x2005)->cfa_off, 80);
	CHECK_EQ(rule_at(table, 0x2015)->cfa_off, 8);
	CHECK_EQ(rule_at(table, 0x2015)->saved[0], RULE_SAME);
	CHECK_EQ(rule_at(table, 0x2016)->cfa_off, 80);
	CHECK_EQ(rule_at(table, 0x203f)->saved[0], -2);
	CHECK_EQ(rule_at(table, 0x2040)->kind, RULE_NONE);
	CHECK_EQ(table->stats.fdes, 1);
	CHECK_EQ(table->stats.bad_fdes, 0);
	weft__unwind_table_free(table);
}

TEST(entries_out_of_order_and_far_apart_are_found)
{
	static const uint8_t ops[] = {0x0e, 32}, end[] = {0x07, 16};
	struct section s = {.n = 0};
	struct weft__unwind_table *table;

	put_cie(&s, "zR");
	put_fde(&s, 0x80000, 16, ops, sizeof(ops));
	put_fde(&s, 0x3000, 0x5000, ops, sizeof(ops));
	put_fde(&s, 0x80010, 16, end, sizeof(end));
	table = table_of(&s);
	REQUIRE(table != NULL);
	CHECK_EQ(rule_at(table, 0x3000)->cfa_off, 32);
	CHECK_EQ(rule_at(table, 0x7fff)->cfa_off, 32); /* rows that began pages before */
	CHECK_EQ(rule_at(table, 0x8000)->kind, RULE_NONE);
	CHECK_EQ(rule_at(table, 0x7ffff)->kind, RULE_NONE);
	CHECK_EQ(rule_at(table, 0x8000f)->cfa_off, 32);
	CHECK_EQ(rule_at(table, 0x80010)->kind, RULE_END);
	CHECK_EQ(rule_at(table, 0x90000)->kind, RULE_NONE);
	weft__unwind_table_free(table);
}

TEST(an_expression_is_kept_aside)
{
	/* CFA = *(rbp - 16) */
	static const uint8_t ops[] = {0x0f, 3, 0x76, 0x70, 0x06};
	struct section s = {.n = 0};
	struct weft__unwind_table *table;
	const struct weft__special *special;

	put_cie(&s, "zR");
	put_fde(&s, 0x2000, 16, ops, sizeof(ops));
	put_fde(&s, 0x2010, 16, ops, sizeof(ops));
	table = table_of(&s);
	REQUIRE(table != NULL);
	REQUIRE(rule_at(table, 0x2004)->kind == RULE_SPECIAL);
	special = (const void *)(table->specials + rule_at(table, 0x2004)->cfa_off);
	CHECK_EQ(special->cfa.how, CFI_VAL_EXPR);
	CHECK_EQ(special->cfa.len, 3);
	CHECK(memcmp((const uint8_t *)special + special->cfa.value, ops + 2, 3) == 0);
	CHECK_EQ(table->n_rules, 2); /* and RULE_NONE */
	weft__unwind_table_free(table);
}

TEST(a_broken_program_keeps_the_rows_before)
{
	static const uint8_t ops[] = {0x0e, 16, 0x44, 0x0e, 24, 0x3f}, good[] = {0x0e, 48};
	struct section s = {.n = 0};
	struct weft__unwind_table *table;

	put_cie(&s, "zR");
	put_fde(&s, 0x2000, 16, ops, sizeof(ops));
	put_fde(&s, 0x2010, 16, good, sizeof(good));
	table = table_of(&s);
	REQUIRE(table != NULL);
	CHECK_EQ(rule_at(table, 0x2000)->cfa_off, 16);
	CHECK_EQ(rule_at(table, 0x2010)->cfa_off, 48);
	CHECK_EQ(table->stats.bad_fdes, 1);
	weft__unwind_table_free(table);
}
#endif

TEST(nothing_is_no_table)
{
	struct weft__cfi_input in = {.bytes = (const uint8_t *)"", .n = 0, .text_high = 1000};
	struct weft__unwind_table *table = NULL;

	CHECK_EQ(weft__unwind_table_new(&table, &in, 1), -ENOENT);
	CHECK(table == NULL);
	CHECK_EQ(weft__unwind_table_open(&table, "/nowhere", NULL), -ENOENT);
	CHECK_EQ(weft__unwind_table_open(&table, "/proc/self/maps", NULL), -ENOEXEC);
}

static const struct weft__module *module_with(const struct weft__modules *set, const char *part)
{
	for (uint32_t i = 0; i < set->n; i++)
		if (strstr(set->module[i]->path, part))
			return set->module[i];
	return NULL;
}

/* How many bytes of the fixture's code have rules, when it is compiled like this. */
static uint64_t code_with_rules(const char *flags)
{
	void *lib = fixture_open("cc", "plain.c", flags);
	const struct weft__module *module;
	uint64_t bytes = 0;
	uint32_t visit;

	if (!lib)
		return 0;
	CHECK(weft__modules_refresh() >= 0);
	module = module_with(weft__modules_enter(&visit), "plain.c.so");
	if (CHECK(module && module->table))
		bytes = module->table->stats.code_bytes;
	weft__modules_leave(visit);
	dlclose(lib);
	weft__modules_stop();
	return bytes;
}

TEST(debug_frame_and_a_missing_header_give_the_same_code)
{
	uint64_t usual = code_with_rules("");

	if (!usual)
		SKIP("no compiler");
	CHECK(usual > 2000);
	CHECK(code_with_rules("-Wl,--no-eh-frame-hdr") >= usual - 100);
	CHECK(code_with_rules("-g -fno-asynchronous-unwind-tables -fno-unwind-tables") >= usual - 500);
}

TEST(a_compressed_debug_frame_is_read)
{
	static const char flags[] = "-g -fno-asynchronous-unwind-tables -fno-unwind-tables";
	struct weft__unwind_table *plain = NULL, *packed = NULL;
	void *lib = fixture_open("cc", "plain.c", flags);
	char command[512], path[160], packed_path[160];

	if (!lib)
		SKIP("no compiler");
	dlclose(lib);
	snprintf(path, sizeof(path), "%s/plain.c.so", fixture_dir);
	snprintf(packed_path, sizeof(packed_path), "%s/packed.so", fixture_dir);
	snprintf(command, sizeof(command), "objcopy --compress-debug-sections=zstd %s %s 2>/dev/null", path,
		 packed_path);
	if (system(command) != 0)
		SKIP("objcopy knows no zstd");
	CHECK_EQ(weft__unwind_table_open(&plain, path, NULL), 0);
	if (CHECK_EQ(weft__unwind_table_open(&packed, packed_path, NULL), 0))
		CHECK_EQ(packed->stats.code_bytes, plain->stats.code_bytes);
	weft__unwind_table_free(packed);
	packed = NULL;
	snprintf(command, sizeof(command), "objcopy --compress-debug-sections=zlib %s %s", path, packed_path);
	if (CHECK_EQ(system(command), 0) && CHECK_EQ(weft__unwind_table_open(&packed, packed_path, NULL), 0))
		CHECK_EQ(packed->stats.code_bytes, plain->stats.code_bytes);
	weft__unwind_table_free(packed);
	weft__unwind_table_free(plain);
}

static long allocs_left;

static void *limited_resize(void *old, size_t bytes, void *data)
{
	(void)data;
	return allocs_left-- > 0 ? realloc(old, bytes) : NULL;
}

static void limited_release(void *old, void *data)
{
	(void)data;
	free(old);
}

TEST(running_out_of_memory_leaves_nothing_behind)
{
	static const struct weft_allocator limited = {limited_resize, limited_release, NULL};
	int result = -ENOMEM, tries = 0;
	uint32_t visit;

	weft__modules_stop();
	for (long n = 0; n < 3000 && result == -ENOMEM; n += n < 60 ? 1 : 7, tries++) {
		allocs_left = n;
		weft_set_allocator(&limited);
		result = weft__modules_refresh();
		weft_set_allocator(NULL);
	}
	CHECK_EQ(result, 1);
	CHECK(tries > 20);
	CHECK(weft__modules_enter(&visit) != NULL);
	weft__modules_leave(visit);
	weft__modules_stop();
}
