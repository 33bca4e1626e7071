/* SPDX-License-Identifier: Apache-2.0 */
/* Our test harness: include it once in a test program, which then has a main.
 *
 *     TEST(reader_refuses_an_empty_file)
 *     {
 *             CHECK_EQ(read_it("", 0), -WEFT_E_FORMAT);
 *     }
 *
 * A failed CHECK is printed and counted and the test goes on; where it cannot, write `if (!CHECK(p)) return;` or
 * REQUIRE. CHECK may be used in any thread and in a signal handler that interrupts no stdio; SKIP and REQUIRE only
 * in the function of the test itself. Arguments choose tests by a part of their name. Exit: 0, 1 on failure, 77 when
 * all were skipped. */
#ifndef WEFT_TEST_H
#define WEFT_TEST_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

struct weft_test {
	const char *name;
	void (*run)(void);
	struct weft_test *next;
};

static struct weft_test *weft_test_first, **weft_test_end = &weft_test_first;
static int weft_test_failures; /* failed checks of the test that runs */
static bool weft_test_skipped;

#define TEST(name)                                                                                                     \
	static void name(void);                                                                                        \
	__attribute__((constructor)) static void weft_test_add_##name(void)                                            \
	{                                                                                                              \
		static struct weft_test test = {#name, name, NULL};                                                    \
		*weft_test_end = &test;                                                                                \
		weft_test_end = &test.next;                                                                            \
	}                                                                                                              \
	static void name(void)

/* Each is true when the check holds. */
#define CHECK(cond) weft_test_true(!!(cond), #cond, __FILE__, __LINE__)
#define CHECK_EQ(a, b) weft_test_eq((long long)(a), (long long)(b), #a " == " #b, __FILE__, __LINE__)
#define CHECK_STR(a, b) weft_test_str((a), (b), #a " is " #b, __FILE__, __LINE__)

#define REQUIRE(cond)                                                                                                  \
	do {                                                                                                           \
		if (!CHECK(cond))                                                                                      \
			return;                                                                                        \
	} while (0)

#define SKIP(reason)                                                                                                   \
	do {                                                                                                           \
		printf("\treason: %s\n", (reason));                                                                    \
		weft_test_skipped = true;                                                                              \
		return;                                                                                                \
	} while (0)

static inline bool weft_test_true(bool ok, const char *text, const char *file, int line)
{
	if (!ok) {
		__atomic_add_fetch(&weft_test_failures, 1, __ATOMIC_RELAXED);
		printf("%s:%d: not so: %s\n", file, line, text);
	}
	return ok;
}

static inline bool weft_test_eq(long long a, long long b, const char *text, const char *file, int line)
{
	if (a != b)
		printf("\tleft %lld (%#llx), right %lld (%#llx)\n", a, a, b, b);
	return weft_test_true(a == b, text, file, line);
}

static inline bool weft_test_str(const char *a, const char *b, const char *text, const char *file, int line)
{
	bool same = a == b || (a && b && strcmp(a, b) == 0);

	if (!same)
		printf("\tleft \"%s\"\n\tright \"%s\"\n", a ? a : "(NULL)", b ? b : "(NULL)");
	return weft_test_true(same, text, file, line);
}

static inline bool weft_test_chosen(const char *name, char **parts)
{
	if (!*parts)
		return true;
	for (; *parts; parts++)
		if (strstr(name, *parts))
			return true;
	return false;
}

int main(int argc, char **argv)
{
	int passed = 0, failed = 0, skipped = 0;

	(void)argc;
	setvbuf(stdout, NULL, _IOLBF, 0); /* so that a child of fork() has nothing of ours to print again */
	for (struct weft_test *test = weft_test_first; test; test = test->next) {
		if (!weft_test_chosen(test->name, argv + 1))
			continue;
		weft_test_failures = 0;
		weft_test_skipped = false;
		test->run();
		if (__atomic_load_n(&weft_test_failures, __ATOMIC_RELAXED)) {
			printf("FAIL %s\n", test->name);
			failed++;
		} else if (weft_test_skipped) {
			printf("skip %s\n", test->name);
			skipped++;
		} else {
			printf("ok   %s\n", test->name);
			passed++;
		}
	}
	if (skipped)
		printf("%d skipped\n", skipped);
	printf("%d passed, %d failed\n", passed, failed);
	if (failed)
		return 1;
	return skipped && !passed ? 77 : 0;
}

#endif
