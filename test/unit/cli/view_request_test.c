/* SPDX-License-Identifier: Apache-2.0 */
/* Which requests weft view answers. */
#include "../../../cli/view_request.c"

#include "weft_test.h"

#define TOKEN "0123456789abcdef0123456789abcdef"

static const char *rest;

static enum view_verdict judge(const char *path, const char *host, const char *origin)
{
	struct view_request request = {path, host, origin};

	rest = NULL;
	return view_request_judge(&request, TOKEN, 7000, &rest);
}

TEST(the_right_token_host_and_origin_are_allowed)
{
	CHECK_EQ(judge("/" TOKEN "/", "127.0.0.1:7000", NULL), VIEW_ALLOWED);
	CHECK_STR(rest, "");
	CHECK_EQ(judge("/" TOKEN "/api/file/3", "localhost:7000", "http://localhost:7000"), VIEW_ALLOWED);
	CHECK_STR(rest, "api/file/3");
	CHECK_EQ(judge("/" TOKEN "/x", "127.0.0.1:7000", "http://127.0.0.1:7000"), VIEW_ALLOWED);
}

TEST(the_port_of_http_need_not_be_said)
{
	struct view_request request = {"/" TOKEN "/", "127.0.0.1", "http://localhost"};

	CHECK_EQ(view_request_judge(&request, TOKEN, 80, &rest), VIEW_ALLOWED);
	request.host = "localhost:80";
	CHECK_EQ(view_request_judge(&request, TOKEN, 80, &rest), VIEW_ALLOWED);
	request.host = "evil.example";
	CHECK_EQ(view_request_judge(&request, TOKEN, 80, &rest), VIEW_BAD_HOST);
}

TEST(another_token_is_refused)
{
	CHECK_EQ(judge("/", "127.0.0.1:7000", NULL), VIEW_BAD_TOKEN);
	CHECK_EQ(judge("", "127.0.0.1:7000", NULL), VIEW_BAD_TOKEN);
	CHECK_EQ(judge("/" TOKEN, "127.0.0.1:7000", NULL), VIEW_BAD_TOKEN);
	CHECK_EQ(judge("/" TOKEN "0/", "127.0.0.1:7000", NULL), VIEW_BAD_TOKEN);
	CHECK_EQ(judge("/0123456789abcdef0123456789abcde0/", "127.0.0.1:7000", NULL), VIEW_BAD_TOKEN);
	CHECK_EQ(judge("/0123456789abcdef/", "127.0.0.1:7000", NULL), VIEW_BAD_TOKEN);
	CHECK_EQ(judge("//" TOKEN "/", "127.0.0.1:7000", NULL), VIEW_BAD_TOKEN);
	CHECK_EQ(judge("/index.html", "127.0.0.1:7000", NULL), VIEW_BAD_TOKEN);
}

TEST(another_host_is_refused)
{
	CHECK_EQ(judge("/" TOKEN "/", NULL, NULL), VIEW_BAD_HOST);
	CHECK_EQ(judge("/" TOKEN "/", "evil.example:7000", NULL), VIEW_BAD_HOST);
	CHECK_EQ(judge("/" TOKEN "/", "127.0.0.1", NULL), VIEW_BAD_HOST);
	CHECK_EQ(judge("/" TOKEN "/", "127.0.0.1:7001", NULL), VIEW_BAD_HOST);
	CHECK_EQ(judge("/" TOKEN "/", "127.0.0.1:7000.evil.example", NULL), VIEW_BAD_HOST);
}

TEST(a_page_of_another_origin_is_refused)
{
	CHECK_EQ(judge("/" TOKEN "/", "127.0.0.1:7000", "http://evil.example"), VIEW_BAD_ORIGIN);
	CHECK_EQ(judge("/" TOKEN "/", "127.0.0.1:7000", "null"), VIEW_BAD_ORIGIN);
	CHECK_EQ(judge("/" TOKEN "/", "127.0.0.1:7000", "https://127.0.0.1:7000"), VIEW_BAD_ORIGIN);
	CHECK_EQ(judge("/" TOKEN "/", "127.0.0.1:7000", "http://127.0.0.1:7001"), VIEW_BAD_ORIGIN);
}

TEST(ranges_are_cut_at_the_end_of_the_file)
{
	uint64_t from = 0, bytes = 0;

	CHECK_EQ(view_request_range("bytes=0-7", 100, &from, &bytes), 1);
	CHECK_EQ(from, 0);
	CHECK_EQ(bytes, 8);
	CHECK_EQ(view_request_range("bytes=90-", 100, &from, &bytes), 1);
	CHECK_EQ(from, 90);
	CHECK_EQ(bytes, 10);
	CHECK_EQ(view_request_range("bytes=90-1000", 100, &from, &bytes), 1);
	CHECK_EQ(bytes, 10);
	CHECK_EQ(view_request_range("bytes=-10", 100, &from, &bytes), 1);
	CHECK_EQ(from, 90);
	CHECK_EQ(view_request_range("bytes=-1000", 100, &from, &bytes), 1);
	CHECK_EQ(from, 0);
	CHECK_EQ(bytes, 100);
}

TEST(ranges_that_are_none_are_ignored_or_refused)
{
	static const char *const ignored[] = {"",          "bytes=",        "bytes=-",
					      "bytes=5",   "bytes=7-3",     "bytes=a-b",
					      "lines=1-2", "bytes=0-1,4-5", "bytes=99999999999999999999-",
					      "bytes=1-2x"};
	uint64_t from, bytes;
	size_t i;

	CHECK_EQ(view_request_range(NULL, 100, &from, &bytes), 0);
	for (i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
		CHECK_EQ(view_request_range(ignored[i], 100, &from, &bytes), 0);
	CHECK_EQ(view_request_range("bytes=100-", 100, &from, &bytes), -1);
	CHECK_EQ(view_request_range("bytes=-0", 100, &from, &bytes), -1);
	CHECK_EQ(view_request_range("bytes=0-", 0, &from, &bytes), -1);
}

TEST(files_are_named_by_number_only)
{
	uint64_t index = 0;

	CHECK(view_request_file("file/12", &index));
	CHECK_EQ(index, 12);
	CHECK(!view_request_file("file/", &index));
	CHECK(!view_request_file("file/1/2", &index));
	CHECK(!view_request_file("file/../../etc/passwd", &index));
	CHECK(!view_request_file("file/-1", &index));
	CHECK(!view_request_file("file/99999999999999999999", &index));
}
