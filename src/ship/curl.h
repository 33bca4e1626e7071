/* SPDX-License-Identifier: Apache-2.0 */
/* libcurl and libcrypto, opened when they are needed: an application that sends nothing does not load them. */
#ifndef WEFT_SHIP_CURL_H
#define WEFT_SHIP_CURL_H

#include <curl/curl.h>
#include <stdint.h>

#include "weft/error.h"

struct weft__curl {
	CURL *(*easy_init)(void);
	void (*easy_cleanup)(CURL *);
	void (*easy_reset)(CURL *);
	CURLcode (*setopt)(CURL *, CURLoption, ...);
	CURLcode (*getinfo)(CURL *, CURLINFO, ...);
	const char *(*strerror)(CURLcode);
	struct curl_slist *(*slist_append)(struct curl_slist *, const char *);
	void (*slist_free)(struct curl_slist *);
	CURLM *(*multi_init)(void);
	CURLMcode (*multi_cleanup)(CURLM *);
	CURLMcode (*multi_add)(CURLM *, CURL *);
	CURLMcode (*multi_remove)(CURLM *, CURL *);
	CURLMcode (*multi_perform)(CURLM *, int *);
	CURLMcode (*multi_poll)(CURLM *, struct curl_waitfd *, unsigned, int, int *);
	CURLMsg *(*multi_read)(CURLM *, int *);
	/* libcrypto */
	void *(*md_new)(void);
	void (*md_free)(void *);
	int (*md_init)(void *, const void *, void *);
	int (*md_update)(void *, const void *, size_t);
	int (*md_final)(void *, unsigned char *, unsigned *);
	const void *(*sha256)(void);
	unsigned char *(*hmac)(const void *, const void *, int, const unsigned char *, size_t, unsigned char *,
			       unsigned *);
};

/* NULL with the reason, if one of them is not there. Once opened they stay. */
const struct weft__curl *weft__curl_open(struct weft_error *err);
/* The same, but only libcrypto is needed. */
const struct weft__curl *weft__crypto_open(struct weft_error *err);

/* Around what runs in these libraries. 0, or -ECANCELED once the program exits: their own exit handlers take away what
 * they need, so exit waits until nobody is in them, which is soon. */
int weft__curl_enter(void);
void weft__curl_leave(void);
/* Whether who is in them is to come out. */
int weft__curl_exiting(void);

#endif
