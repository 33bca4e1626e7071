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

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		CHECK_EQ(weft__preload_may_have(names[i]), dlsym(RTLD_DEFAULT, names[i]) != NULL);
}

/* The program that the library is in, here the test itself, has the names that it stands for. */
TEST(a_symbol_of_the_library_itself_does_not_count)
{
	CHECK(!weft__preload_may_have("weft__preload_may_have"));
}
