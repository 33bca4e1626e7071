/* SPDX-License-Identifier: Apache-2.0 */
/* Programs as Debian builds them, under load, with our unwinder and libunwind preloaded into them: the stacks of both
 * are the same, to the program's first function. */
/* presets: release: it compiles for itself */
#include <sys/wait.h>

#include "oracle.h"
#include "weft_test.h"

static char library[128];

/* NULL, or why it cannot be had. */
static const char *preload_make(void)
{
	static const char *why;
	static int tried;
	const char *build = getenv("WEFT_BUILD"), *source = getenv("WEFT_SOURCE");
	char command[1024];

	if (tried++)
		return why;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	return why = "the library has a sanitizer in it, which a program as it was installed has not";
#endif
	why = oracle_open();
	if (why)
		return why;
	if (!build || !source)
		return why = "WEFT_BUILD and WEFT_SOURCE do not say where the library is";
	strcpy(fixture_dir, "/tmp/weft-unwind-XXXXXX");
	if (!mkdtemp(fixture_dir)) {
		*fixture_dir = 0;
		return why = "no directory in /tmp";
	}
	atexit(fixture_remove);
	snprintf(library, sizeof(library), "%s/preload.so", fixture_dir);
	snprintf(command, sizeof(command),
		 "cc -std=gnu11 -O1 -g0 -D_GNU_SOURCE -fPIC -shared -I%s/src -I%s/include -o %s "
		 "%s/test/unit/unwind/fixture/preload.c %s/libweft.a -lzstd -ldeflate -lpthread -ldl",
		 source, source, library, source, build);
	if (system(command) != 0)
		why = "the library to preload cannot be made";
	return why;
}

static int there(const char *program)
{
	return access(program, X_OK) == 0;
}

/* Runs `arguments` of `program` with the library preloaded, from the folder of the fixtures. */
static void run_stock(const char *program, const char *arguments)
{
	unsigned long long samples = 0, same = 0, complete = 0, beyond = 0;
	char command[1024], line[512], result[160];
	FILE *file;
	int status;

	snprintf(result, sizeof(result), "%s/result", fixture_dir);
	unlink(result);
	snprintf(command, sizeof(command),
		 "cd %s/test/unit/unwind/fixture && timeout 100 env LD_PRELOAD=%s WEFT_STOCK=%s %s %s >/dev/null",
		 getenv("WEFT_SOURCE"), library, result, program, arguments);
	status = system(command);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	file = fopen(result, "r");
	if (!CHECK(file != NULL))
		return;
	CHECK(fscanf(file, "%llu %llu %llu %llu\n", &samples, &same, &complete, &beyond) == 4);
	printf("\t%s: %.2f %% of %llu samples are complete and the same as libunwind's, frame for frame\n", program,
	       samples ? 100 * (double)same / (double)samples : 0, samples);
	while (fgets(line, sizeof(line), file))
		fputs(line, stdout);
	fclose(file);
	CHECK(samples > 300);
	CHECK(same * 1000 >= samples * 995);
	CHECK(complete * 1000 >= samples * 995);
}

#define STOCK_TEST(test, program, package, arguments)                                                                  \
	TEST(test)                                                                                                     \
	{                                                                                                              \
		const char *why = there(program) ? preload_make() : "no " program " (Debian: " package ")";            \
		if (why)                                                                                               \
			SKIP(why);                                                                                     \
		run_stock(program, arguments);                                                                         \
	}

STOCK_TEST(sqlite3, "/usr/bin/sqlite3", "sqlite3", ":memory: <stock.sql")
STOCK_TEST(python3, "/usr/bin/python3", "python3", "stock.py 200")
STOCK_TEST(a_compiler, "/usr/lib/gcc/x86_64-linux-gnu/12/cc1plus", "g++-12",
	   "-quiet -O2 -D_GNU_SOURCE -imultiarch x86_64-linux-gnu stock.cc -o /dev/null")
