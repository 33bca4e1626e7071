/* SPDX-License-Identifier: Apache-2.0 */
/* URLs, keys, profile files, XML: what is parsed and what is made of names. */
#include <string.h>

#include "ship/key.h"
#include "ship/profile.h"
#include "ship/s3.h"
#include "ship/url.h"
#include "ship/xml.h"
#include "weft_test.h"

TEST(a_url_has_its_parts)
{
	struct weft__url url;

	CHECK_EQ(weft__url_parse(&url, "s3://bucket/a%20b/c?region=eu&endpoint=http://h:1/x&e", NULL), 0);
	CHECK_STR(url.scheme, "s3");
	CHECK_STR(url.authority, "bucket");
	CHECK_STR(url.path, "/a b/c");
	CHECK_STR(weft__url_query(&url, "region"), "eu");
	CHECK_STR(weft__url_query(&url, "endpoint"), "http://h:1/x");
	CHECK_STR(weft__url_query(&url, "e"), "");
	CHECK(!weft__url_query(&url, "owner"));
}

TEST(urls_that_are_none_are_refused)
{
	static const char *const bad[] = {"", "bucket", "://x", "s3://b/%", "s3://b/%4", "s3://b/%zz", "s3://b/%00"};
	struct weft__url url;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CHECK(weft__url_parse(&url, bad[i], NULL) < 0);
}

TEST(a_url_is_shown_without_secrets)
{
	char shown[100], tag[9], other[9];

	weft__url_show("https://me:pass@word@host:8/path?key=secret", shown, sizeof(shown));
	CHECK_STR(shown, "https://host:8/path");
	weft__url_show("http://host?key=secret", shown, sizeof(shown));
	CHECK_STR(shown, "http://host");
	weft__url_show("/a/b@c", shown, sizeof(shown));
	CHECK_STR(shown, "/a/b@c");
	weft__url_tag("http://a", tag);
	weft__url_tag("http://b", other);
	CHECK(strlen(tag) == 8 && strcmp(tag, other) != 0);
}

TEST(all_but_plain_characters_are_encoded)
{
	struct weft__buf to = {0};

	weft__url_encode(&to, "a b/c=d~\xc3\xa4", 1);
	weft__buf_u8(&to, 0);
	CHECK_STR((char *)to.bytes, "a%20b/c%3Dd~%C3%A4");
	weft__buf_clear(&to);
	weft__url_encode(&to, "/", 0);
	weft__buf_u8(&to, 0);
	CHECK_STR((char *)to.bytes, "%2F");
	weft__buf_free(&to);
}

TEST(a_part_of_a_key_cannot_leave_its_place)
{
	char part[16];

	weft__key_part("../../etc", part, sizeof(part));
	CHECK_STR(part, "_._.._etc");
	weft__key_part("", part, sizeof(part));
	CHECK_STR(part, "unknown");
	weft__key_part("a/b c\n\"", part, sizeof(part));
	CHECK_STR(part, "a_b_c__");
	weft__key_part("0123456789abcdefghij", part, sizeof(part));
	CHECK_STR(part, "0123456789abcde");
}

TEST(a_profile_has_values_by_section)
{
	static const char text[] =
		"# x\n[default]\r\nkey = one \r\n[ team ]\nkey=two\nlong = 0123456789\nkey_id = x\n[empty]\n";
	char value[8];

	CHECK(weft__profile_text(text, "default", "key", value, sizeof(value)));
	CHECK_STR(value, "one");
	CHECK(weft__profile_text(text, "team", "key", value, sizeof(value)));
	CHECK_STR(value, "two");
	CHECK(!weft__profile_text(text, "team", "long", value, sizeof(value)));
	CHECK(!weft__profile_text(text, "empty", "key", value, sizeof(value)));
	CHECK(!weft__profile_text(text, "none", "key", value, sizeof(value)));
	CHECK(!weft__profile_text("", "a", "b", value, sizeof(value)));
}

static int count_object(const struct weft__s3_object *object, void *data)
{
	struct weft__s3_object *last = data;

	*last = *object;
	return 0;
}

TEST(a_page_of_a_list_is_read)
{
	static const char page[] =
		"<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>a&amp;b</"
		"NextContinuationToken>"
		"<Contents><Key>x&lt;y&#39;</Key><LastModified>2026</LastModified><Size>12</Size></Contents>"
		"<Contents><Size>9</Size></Contents></ListBucketResult>";
	struct weft__s3_object last = {0};
	char token[16];
	int stop = 0;

	CHECK_EQ(weft__s3_page(page, token, sizeof(token), count_object, &last, &stop), 1);
	CHECK_STR(token, "a&b");
	CHECK_STR(last.key, "x<y'");
	CHECK_EQ(last.bytes, 12);
	CHECK_EQ(weft__s3_page("<Contents><Key>", token, sizeof(token), count_object, &last, &stop), 0);
}

TEST(s3_urls_name_host_and_path)
{
	struct weft__s3 s3;

	CHECK_EQ(weft__s3_open(&s3, "s3://bucket/p/?region=eu-west-3&endpoint=http://127.0.0.1:9/", NULL, NULL), 0);
	CHECK_STR(s3.endpoint, "http://127.0.0.1:9");
	CHECK_STR(s3.base, "/bucket");
	CHECK_STR(s3.prefix, "p");
	weft__s3_close(&s3);
	CHECK_EQ(weft__s3_open(&s3, "s3://bucket?region=eu-west-3&style=host&endpoint=https://store.example", NULL,
			       NULL),
		 0);
	CHECK_STR(s3.endpoint, "https://bucket.store.example");
	CHECK_STR(s3.base, "");
	weft__s3_close(&s3);
	CHECK(weft__s3_open(&s3, "s3://a/x", NULL, NULL) < 0);
	CHECK(weft__s3_open(&s3, "s3://buc$ket/x", NULL, NULL) < 0);
	CHECK(weft__s3_open(&s3, "s3://bucket?endpoint=host", NULL, NULL) < 0);
}
