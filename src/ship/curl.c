/* SPDX-License-Identifier: Apache-2.0 */
#include "ship/curl.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/atomic.h"
#include "base/error.h"

#define EXIT_WAIT_NS 300000000L /* at most; nobody is in them for longer than a turn of the loop in http.c */

/* OPENSSL_INIT_NO_ATEXIT: what the library frees at exit another thread may be using. */
#define NO_ATEXIT UINT64_C(0x80000)

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t out;
static uint32_t inside, exiting;
static struct weft__curl curl;
static int has_curl, has_crypto;

static void *open_any(const char *const *names)
{
	void *handle = NULL;

	for (; *names && !handle; names++)
		handle = dlopen(*names, RTLD_NOW | RTLD_LOCAL);
	return handle;
}

static int find(void *handle, const char *name, void *to)
{
	void *symbol = dlsym(handle, name);

	memcpy(to, &symbol, sizeof(symbol));
	return symbol != NULL;
}

static void at_exit(void)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += EXIT_WAIT_NS;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	pthread_mutex_lock(&mutex);
	store_relaxed(&exiting, 1u);
	while (inside && pthread_cond_timedwait(&out, &mutex, &until) == 0)
		;
	pthread_mutex_unlock(&mutex);
}

/* Nobody is in them in the child. */
static void in_child(void)
{
	pthread_mutex_init(&mutex, NULL);
	inside = 0;
}

/* With the mutex. */
static int load_crypto(struct weft_error *err)
{
	static const char *const names[] = {"libcrypto.so.3", "libcrypto.so.1.1", NULL};
	int (*init)(uint64_t, const void *) = NULL;
	void *handle;

	if (has_crypto)
		return 1;
	handle = open_any(names);
	if (!handle)
		return weft__fail(err, 0, "libcrypto.so.3 cannot be opened: install libssl3");
	if (find(handle, "OPENSSL_init_crypto", &init))
		init(NO_ATEXIT, NULL);
	has_crypto = find(handle, "EVP_MD_CTX_new", &curl.md_new) && find(handle, "EVP_MD_CTX_free", &curl.md_free) &&
		     find(handle, "EVP_DigestInit_ex", &curl.md_init) &&
		     find(handle, "EVP_DigestUpdate", &curl.md_update) &&
		     find(handle, "EVP_DigestFinal_ex", &curl.md_final) && find(handle, "EVP_sha256", &curl.sha256) &&
		     find(handle, "HMAC", &curl.hmac);
	return has_crypto ? 1 : weft__fail(err, 0, "libcrypto has not the functions that weft needs");
}

static int find_curl(void *handle)
{
	return find(handle, "curl_easy_init", &curl.easy_init) &&
	       find(handle, "curl_easy_cleanup", &curl.easy_cleanup) &&
	       find(handle, "curl_easy_reset", &curl.easy_reset) && find(handle, "curl_easy_setopt", &curl.setopt) &&
	       find(handle, "curl_easy_getinfo", &curl.getinfo) && find(handle, "curl_easy_strerror", &curl.strerror) &&
	       find(handle, "curl_slist_append", &curl.slist_append) &&
	       find(handle, "curl_slist_free_all", &curl.slist_free) &&
	       find(handle, "curl_multi_init", &curl.multi_init) &&
	       find(handle, "curl_multi_cleanup", &curl.multi_cleanup) &&
	       find(handle, "curl_multi_add_handle", &curl.multi_add) &&
	       find(handle, "curl_multi_remove_handle", &curl.multi_remove) &&
	       find(handle, "curl_multi_perform", &curl.multi_perform) &&
	       find(handle, "curl_multi_poll", &curl.multi_poll) &&
	       find(handle, "curl_multi_info_read", &curl.multi_read);
}

/* With the mutex. */
static int load_curl(struct weft_error *err)
{
	static const char *const names[] = {"libcurl.so.4", "libcurl-gnutls.so.4", NULL};
	CURLcode (*init)(long) = NULL;
	pthread_condattr_t attr;
	struct weft_error none;
	void *handle;

	if (has_curl)
		return 1;
	load_crypto(&none); /* first, if it is there: before libcurl initializes it */
	handle = open_any(names);
	if (!handle)
		return weft__fail(err, 0, "libcurl.so.4 cannot be opened: install libcurl4");
	if (!find(handle, "curl_global_init", &init) || !find_curl(handle) || init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
		return weft__fail(err, 0, "libcurl.so.4 is older than 7.66 or cannot be initialized");
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&out, &attr);
	pthread_condattr_destroy(&attr);
	pthread_atfork(NULL, NULL, in_child);
	atexit(at_exit); /* behind what the libraries themselves registered, so that it runs before that */
	has_curl = 1;
	return 1;
}

static const struct weft__curl *opened(int (*load)(struct weft_error *), struct weft_error *err)
{
	int ok;

	pthread_mutex_lock(&mutex);
	ok = load(err);
	pthread_mutex_unlock(&mutex);
	if (!ok && err)
		err->code = -ENOENT;
	return ok ? &curl : NULL;
}

const struct weft__curl *weft__curl_open(struct weft_error *err)
{
	return opened(load_curl, err);
}

const struct weft__curl *weft__crypto_open(struct weft_error *err)
{
	return opened(load_crypto, err);
}

int weft__curl_enter(void)
{
	int stay;

	pthread_mutex_lock(&mutex);
	stay = !exiting;
	inside += (uint32_t)stay;
	pthread_mutex_unlock(&mutex);
	return stay ? 0 : -ECANCELED;
}

void weft__curl_leave(void)
{
	pthread_mutex_lock(&mutex);
	if (!--inside && exiting)
		pthread_cond_broadcast(&out);
	pthread_mutex_unlock(&mutex);
}

int weft__curl_exiting(void)
{
	return load_relaxed(&exiting) != 0;
}
