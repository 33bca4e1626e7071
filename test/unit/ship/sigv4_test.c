/* SPDX-License-Identifier: Apache-2.0 */
/* Signatures against the examples that AWS publishes for S3 ("Signature Calculations for the Authorization Header"). */
#include <string.h>

#include "ship/credentials.h"
#include "ship/crypt.h"
#include "ship/sigv4.h"
#include "weft_test.h"

#define EMPTY "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
#define HOST "examplebucket.s3.amazonaws.com"
#define DATE "20130524T000000Z"

static struct weft__sigv4 example(const char *method, const char *path, const char *query, const char *payload)
{
	struct weft__sigv4 what = {
		.method = method,
		.path = path,
		.query = query,
		.headers = {{"x-amz-date", DATE}, {"x-amz-content-sha256", payload}, {"host", HOST}},
		.n_headers = 3,
		.payload = payload,
		.date = DATE,
		.region = "us-east-1",
		.service = "s3",
		.key_id = "AKIAIOSFODNN7EXAMPLE",
		.secret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
	};

	return what;
}

static void check_signature(const struct weft__sigv4 *what, const char *headers, const char *signature)
{
	char got[SIGV4_BYTES], want[SIGV4_BYTES];
	struct weft_error err = {0};

	snprintf(want, sizeof(want),
		 "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,"
		 "SignedHeaders=%s,Signature=%s",
		 headers, signature);
	CHECK_EQ(weft__sigv4(what, got, &err), 0);
	CHECK_STR(got, want);
}

TEST(get_of_an_object)
{
	struct weft__sigv4 what = example("GET", "/test.txt", "", EMPTY);

	what.headers[what.n_headers].name = "range";
	what.headers[what.n_headers++].value = "bytes=0-9";
	check_signature(&what, "host;range;x-amz-content-sha256;x-amz-date",
			"f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
}

TEST(put_of_an_object)
{
	char payload[SHA256_HEX];
	struct weft__sigv4 what;

	CHECK_EQ(weft__sha256("Welcome to Amazon S3.", 21, payload, NULL), 0);
	CHECK_STR(payload, "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072");
	what = example("PUT", "/test%24file.text", "", payload);
	what.headers[what.n_headers].name = "x-amz-storage-class";
	what.headers[what.n_headers++].value = "REDUCED_REDUNDANCY";
	what.headers[what.n_headers].name = "date";
	what.headers[what.n_headers++].value = "Fri, 24 May 2013 00:00:00 GMT";
	check_signature(&what, "date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class",
			"98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd");
}

TEST(a_question_without_a_value)
{
	struct weft__sigv4 what = example("GET", "/", "lifecycle=", EMPTY);

	check_signature(&what, "host;x-amz-content-sha256;x-amz-date",
			"fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
}

TEST(list_of_a_bucket)
{
	struct weft__sigv4 what = example("GET", "/", "max-keys=2&prefix=J", EMPTY);

	check_signature(&what, "host;x-amz-content-sha256;x-amz-date",
			"34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
}

TEST(credentials_from_json)
{
	struct weft__credentials c = {0};

	CHECK_EQ(weft__credentials_json(&c,
					"{\"AccessKeyId\":\"a\",\"SecretAccessKey\":\"b\",\"Token\":\"c\","
					"\"Expiration\":\"2026-11-18T00:00:00Z\"}",
					NULL),
		 0);
	CHECK_STR(c.secret, "b");
	CHECK_EQ(c.until_real_ns / 1000000000u, 1794960000);
	CHECK(weft__credentials_json(&c, "{\"AccessKeyId\":1}", NULL) < 0);
	CHECK(weft__credentials_json(&c, "", NULL) < 0);
}
