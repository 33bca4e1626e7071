/* SPDX-License-Identifier: Apache-2.0 */
#include "ship/sigv4.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "ship/crypt.h"

/* Which header comes where. */
static void sort_headers(const struct weft__sigv4 *what, uint32_t order[SIGV4_HEADERS])
{
	uint32_t i, j;

	for (i = 0; i < what->n_headers; i++) {
		for (j = i; j && strcmp(what->headers[order[j - 1]].name, what->headers[i].name) > 0; j--)
			order[j] = order[j - 1];
		order[j] = i;
	}
}

static void put_text(struct weft__buf *to, const char *text)
{
	weft__buf_put(to, text, strlen(text));
}

static void put_names(struct weft__buf *to, const struct weft__sigv4 *what, const uint32_t *order)
{
	uint32_t i;

	for (i = 0; i < what->n_headers; i++) {
		if (i)
			put_text(to, ";");
		put_text(to, what->headers[order[i]].name);
	}
}

/* The request as both sides see it. */
static void put_request(struct weft__buf *to, const struct weft__sigv4 *what, const uint32_t *order)
{
	const char *lines[] = {what->method, what->path, what->query};
	uint32_t i;

	for (i = 0; i < 3; i++) {
		put_text(to, lines[i]);
		put_text(to, "\n");
	}
	for (i = 0; i < what->n_headers; i++) {
		put_text(to, what->headers[order[i]].name);
		put_text(to, ":");
		put_text(to, what->headers[order[i]].value);
		put_text(to, "\n");
	}
	put_text(to, "\n");
	put_names(to, what, order);
	put_text(to, "\n");
	put_text(to, what->payload);
}

/* A key for this day, region and service, and with it the signature. */
static int sign(const struct weft__sigv4 *what, const char *text, char hex[SHA256_HEX], struct weft_error *err)
{
	const char *steps[] = {what->region, what->service, "aws4_request", text};
	uint8_t key[SHA256_BYTES], next[SHA256_BYTES];
	char secret[512], day[9];
	size_t i;
	int r;

	if ((size_t)snprintf(secret, sizeof(secret), "AWS4%s", what->secret) >= sizeof(secret))
		return weft__fail(err, -WEFT_E_OPTION, "the secret key is too long");
	snprintf(day, sizeof(day), "%.8s", what->date);
	r = weft__hmac(secret, strlen(secret), day, key, err);
	explicit_bzero(secret, sizeof(secret));
	for (i = 0; i < 4 && !r; i++) {
		r = weft__hmac(key, sizeof(key), steps[i], next, err);
		memcpy(key, next, sizeof(key));
	}
	if (!r)
		weft__hex(key, sizeof(key), hex);
	explicit_bzero(key, sizeof(key));
	return r;
}

int weft__sigv4(const struct weft__sigv4 *what, char to[SIGV4_BYTES], struct weft_error *err)
{
	char scope[160], text[400], hash[SHA256_HEX], signature[SHA256_HEX];
	uint32_t order[SIGV4_HEADERS];
	struct weft__buf request = {0}, names = {0};
	int r;

	sort_headers(what, order);
	put_request(&request, what, order);
	put_names(&names, what, order);
	weft__buf_u8(&names, 0);
	r = request.oom || names.oom ? weft__fail(err, -ENOMEM, "out of memory")
				     : weft__sha256(request.bytes, request.n, hash, err);
	snprintf(scope, sizeof(scope), "%.8s/%s/%s/aws4_request", what->date, what->region, what->service);
	snprintf(text, sizeof(text), "AWS4-HMAC-SHA256\n%s\n%s\n%s", what->date, scope, r ? "" : hash);
	if (!r)
		r = sign(what, text, signature, err);
	if (!r && (size_t)snprintf(to, SIGV4_BYTES, "AWS4-HMAC-SHA256 Credential=%s/%s,SignedHeaders=%s,Signature=%s",
				   what->key_id, scope, (char *)names.bytes, signature) >= SIGV4_BYTES)
		r = weft__fail(err, -WEFT_E_OPTION, "the access key is too long");
	weft__buf_free(&request);
	weft__buf_free(&names);
	return r;
}
