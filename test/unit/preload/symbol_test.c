/* SPDX-License-Identifier: Apache-2.0 */
/* Symbols that are looked for without dlsym: what dlsym finds is found. */
#include "../../../bindings/preload/symbol.c"

#include <dlfcn.h>

#include "weft_test.h"

TEST(symbols_of_the_c_library_are_found_as_dlsym_finds_them)
{
	static const char *const names[] = {"malloc",         "read",  "epoll_wait", "pthread_mutex_lock",
					    "no_such_symbol", "x",     "",           "io_uring_no_such_call",
					    "printf",         "mallo", "mallocc"};
	struct symbol_objects objects;

	weft__preload_objects(&objects);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		CHECK_EQ(weft__preload_may_have(&objects, names[i]), dlsym(RTLD_DEFAULT, names[i]) != NULL);
}

/* Of several versions it is the default one. What the loader has to call first is left to it. */
TEST(the_address_of_a_name_that_only_the_c_library_has_is_that_of_dlsym)
{
	static const char *const names[] = {
		"read",    "epoll_wait",  "pthread_create",       "pthread_cond_wait", "memcpy",
		"fclose",  "getaddrinfo", "posix_spawn",          "timer_create",      "nftw",
		"environ", "regexec",     "pthread_mutex_unlock",
	};
	struct symbol_objects objects;
	unsigned found = 0;

	weft__preload_objects(&objects);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		bool nobody;
		void *at = weft__preload_in_libc_only(&objects, names[i], &nobody);

		CHECK(!nobody);
		CHECK(!at || at == dlsym(RTLD_DEFAULT, names[i]));
		found += at != NULL;
	}
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	CHECK(found >= 2); /* the sanitizer's own library has most of them, too, and is asked */
#else
	CHECK(found >= 10);
#endif
}

TEST(a_name_that_nobody_has_is_known_to_be_nobodys)
{
	struct symbol_objects objects;
	bool nobody = false;

	weft__preload_objects(&objects);
	CHECK(!weft__preload_in_libc_only(&objects, "no_such_symbol", &nobody));
	CHECK(nobody);
	/* More libraries than are looked at may have anything. */
	objects.more = true;
	CHECK(!weft__preload_in_libc_only(&objects, "read", &nobody));
	CHECK(!nobody);
	CHECK(weft__preload_may_have(&objects, "no_such_symbol"));
}

/* Another library that has the name is to be found by dlsym, which knows the order. */
TEST(a_name_that_another_library_has_too_is_left_to_dlsym)
{
	struct symbol_objects objects;
	bool nobody = true;

	weft__preload_objects(&objects);
	CHECK(objects.n > 0 && objects.n < SYMBOL_OBJECTS);
	for (size_t i = 0; i < objects.n; i++)
		if (objects.at[i].is_libc) {
			objects.at[objects.n] = objects.at[i];
			objects.at[objects.n++].is_libc = false;
			break;
		}
	CHECK(!weft__preload_in_libc_only(&objects, "read", &nobody));
	CHECK(!nobody);
}

/* The program that the library is in, here the test itself, has the names that it stands for. */
TEST(a_symbol_of_the_library_itself_does_not_count)
{
	struct symbol_objects objects;

	weft__preload_objects(&objects);
	CHECK(!weft__preload_may_have(&objects, "weft__preload_may_have"));
}
