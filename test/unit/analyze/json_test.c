/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/json.h"

#include <math.h>
#include <stdlib.h>

#include "weft_test.h"

/* One text value, as printed. */
static void check_text(const char *text, const char *printed)
{
	char *out = NULL;
	size_t bytes = 0;
	struct weft__json json = {.out = open_memstream(&out, &bytes)};

	weft__json_text(&json, NULL, text);
	fclose(json.out);
	CHECK_STR(out, printed);
	free(out);
}

TEST(json_text_is_escaped)
{
	check_text("plain", "\"plain\"");
	check_text("a\"b\\c", "\"a\\\"b\\\\c\"");
	check_text("tab\tline\nbell\a\x7f", "\"tab\\tline\\nbell\\u0007\\u007f\"");
	check_text("", "\"\"");
	check_text(NULL, "null");
}

/* U+0080 to U+009F are control characters, and U+009B begins a control sequence on some terminals. */
TEST(control_characters_of_two_bytes_are_escaped)
{
	check_text("a\xc2\x9b"
		   "31mb",
		   "\"a\\u009b31mb\"");
	check_text("\xc2\x80\xc2\x9f\xc2\xa0", "\"\\u0080\\u009f\xc2\xa0\"");
}

TEST(utf8_stays_and_other_bytes_do_not)
{
	check_text("gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\xa7\xb5",
		   "\"gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\xa7\xb5\"");
	check_text("\xff", "\"\\ufffd\"");
	check_text("a\xc3", "\"a\\ufffd\"");                                /* cut */
	check_text("\xc0\xaf", "\"\\ufffd\\ufffd\"");                       /* overlong */
	check_text("\xed\xa0\x80", "\"\\ufffd\\ufffd\\ufffd\"");            /* surrogate */
	check_text("\xf4\x90\x80\x80", "\"\\ufffd\\ufffd\\ufffd\\ufffd\""); /* beyond U+10FFFF */
	check_text("\xe2\x82x", "\"\\ufffd\\ufffdx\"");
}

TEST(json_members_and_nesting_have_their_commas)
{
	char *out = NULL;
	size_t bytes = 0;
	struct weft__json json = {.out = open_memstream(&out, &bytes)};

	weft__json_begin(&json, NULL, '{');
	weft__json_u64(&json, "big", UINT64_MAX - 1);
	weft__json_i64(&json, "low", INT64_MIN);
	weft__json_begin(&json, "list", '[');
	weft__json_bool(&json, NULL, true);
	weft__json_f64(&json, NULL, 0.25);
	weft__json_f64(&json, NULL, NAN);
	weft__json_f64(&json, NULL, INFINITY);
	weft__json_end(&json, ']');
	weft__json_begin(&json, "empty", '{');
	weft__json_end(&json, '}');
	weft__json_absent(&json, "share", "no park events");
	weft__json_end(&json, '}');
	fclose(json.out);
	CHECK_STR(out,
		  "{\n  \"big\": 18446744073709551614,\n  \"low\": -9223372036854775808,\n  \"list\": [\n    true,\n"
		  "    0.25,\n    null,\n    null\n  ],\n  \"empty\": {},\n  \"share\": null,\n"
		  "  \"share_why\": \"no park events\"\n}\n");
	free(out);
}

/* A sum that does not fit and a value that is not known are UINT64_MAX inside: no reader should take that for a
 * number. */
TEST(the_largest_number_is_null_in_json)
{
	char *out = NULL;
	size_t bytes = 0;
	struct weft__json json = {.out = open_memstream(&out, &bytes)};

	weft__json_begin(&json, NULL, '[');
	weft__json_u64(&json, NULL, UINT64_MAX);
	weft__json_u64(&json, NULL, UINT64_MAX - 1);
	weft__json_end(&json, ']');
	fclose(json.out);
	CHECK(strstr(out, "null") != NULL);
	CHECK(strstr(out, "18446744073709551614") != NULL);
	CHECK(strstr(out, "18446744073709551615") == NULL);
	free(out);
}
