/* SPDX-License-Identifier: Apache-2.0 */
/* Modules that come and go, while a thread is sampled and while nobody is. */
#include <errno.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/atomic.h"
#include "oracle.h"
#include "weft_test.h"

static const struct weft__module *find_path(const struct weft__modules *set, const char *part)
{
	for (uint32_t i = 0; i < set->n; i++)
		if (strstr(set->module[i]->path, part))
			return set->module[i];
	return NULL;
}

TEST(the_program_libc_and_vdso_are_there_with_tables)
{
	static const char *const paths[] = {"modules_test", "libc.so", "[vdso]"};
	const struct weft__modules *set;
	uint32_t visit;

	CHECK(weft__modules_refresh() >= 0);
	set = weft__modules_enter(&visit);
	for (int i = 0; i < 3; i++) {
		const struct weft__module *module = find_path(set, paths[i]);

		if (!CHECK(module != NULL))
			continue;
		CHECK(module->table != NULL);
		CHECK(module->build_id_n >= 8 || i == 0);
		CHECK(module->text_start >= module->start && module->text_end <= module->end);
		CHECK(weft__modules_find(set, module->text_start) == module);
		CHECK(weft__modules_find(set, module->end - 1) == module);
		CHECK_EQ(module->kind, i == 0   ? WEFT__MODULE_PROGRAM
				       : i == 1 ? WEFT__MODULE_LIBRARY
						: WEFT__MODULE_VDSO);
	}
	CHECK(weft__modules_find(set, 0) == NULL);
	CHECK(weft__modules_find(set, UINT64_MAX) == NULL);
	weft__modules_leave(visit);
}

TEST(nothing_changed_makes_no_new_set)
{
	const struct weft__modules *before, *after;
	uint32_t visit, again;

	CHECK(weft__modules_refresh() >= 0);
	before = weft__modules_enter(&visit);
	CHECK_EQ(weft__modules_refresh(), 0);
	after = weft__modules_enter(&again);
	CHECK(before == after);
	weft__modules_leave(visit);
	weft__modules_leave(again);
}

TEST(a_library_comes_and_goes_and_the_others_keep_their_tables)
{
	const struct weft__modules *set;
	uint32_t visit;
	const struct weft__module *libc, *mine;
	struct weft__unwind_table *libc_table;
	void *lib;

	CHECK(weft__modules_refresh() >= 0);
	set = weft__modules_enter(&visit);
	libc = find_path(set, "libc.so");
	libc_table = libc ? libc->table : NULL;
	CHECK(find_path(set, "plain.c.so") == NULL);
	weft__modules_leave(visit);

	lib = fixture_open("cc", "plain.c", "");
	if (!lib)
		SKIP("no compiler");
	CHECK_EQ(weft__modules_refresh(), 1);
	set = weft__modules_enter(&visit);
	mine = find_path(set, "plain.c.so");
	CHECK(mine && mine->table && mine->table->stats.bad_fdes == 0 && mine->table->stats.lost_rules == 0);
	CHECK(find_path(set, "libc.so") == libc && libc->table == libc_table);
	weft__modules_leave(visit);

	dlclose(lib);
	CHECK_EQ(weft__modules_refresh(), 1);
	set = weft__modules_enter(&visit);
	CHECK(find_path(set, "plain.c.so") == NULL);
	weft__modules_leave(visit);
	CHECK_EQ(weft__modules_sweep(), 0);
}

TEST(a_set_stays_while_somebody_is_in_it)
{
	const struct weft__modules *set;
	uint32_t visit;
	void *lib;

	CHECK(weft__modules_refresh() >= 0);
	set = weft__modules_enter(&visit);
	lib = fixture_open("cc", "plain.c", "");
	if (!lib) {
		weft__modules_leave(visit);
		SKIP("no compiler");
	}
	CHECK_EQ(weft__modules_refresh(), 1);
	CHECK_EQ(weft__modules_sweep(), 1);
	CHECK(find_path(set, "libc.so") != NULL);
	CHECK(find_path(set, "plain.c.so") == NULL);
	weft__modules_leave(visit);
	CHECK_EQ(weft__modules_sweep(), 0);
	dlclose(lib);
	CHECK_EQ(weft__modules_refresh(), 1);
}

TEST(a_set_of_modules_can_be_stopped_and_begun_again)
{
	uint32_t visit;

	weft__modules_stop();
	CHECK(weft__modules_enter(&visit) == NULL);
	weft__modules_leave(visit);
	CHECK_EQ(weft__modules_refresh(), 1);
	CHECK(weft__modules_enter(&visit) != NULL);
	weft__modules_leave(visit);
}

static int halt_now(void)
{
	return 1;
}

static uint32_t count_pending(const struct weft__modules *set, int stays)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < set->n; i++)
		n += set->module[i]->pending && set->module[i]->stays == stays;
	return n;
}

TEST(tables_are_made_one_by_one_those_that_stay_first)
{
	const struct weft__modules *set;
	const struct weft__module *libc;
	uint32_t visit, n, id;
	void *lib, *other = dlopen("libutil.so.1", RTLD_NOW | RTLD_LOCAL); /* does not stay */

	if (!other)
		SKIP("no library that the program was not linked with");
	weft__modules_stop();
	CHECK(weft__modules_stale());
	CHECK_EQ(weft__modules_look(), 1);
	CHECK_EQ(weft__modules_look(), 0);
	CHECK(weft__modules_stale());
	set = weft__modules_enter(&visit);
	CHECK_EQ(count_pending(set, 0) + count_pending(set, 1), set->n);
	libc = find_path(set, "libc.so");
	REQUIRE(libc);
	CHECK(weft__module_table(libc) == NULL);
	id = libc->id;
	CHECK_EQ(weft__modules_compile(halt_now), -ECANCELED);
	CHECK_EQ(count_pending(set, 0) + count_pending(set, 1), set->n);
	while ((n = count_pending(set, 1))) {
		uint32_t others = count_pending(set, 0);

		CHECK_EQ(weft__modules_compile(NULL), 1);
		CHECK_EQ(count_pending(set, 1), n - 1);
		CHECK_EQ(count_pending(set, 0), others);
	}
	CHECK(weft__module_table(libc) != NULL);
	CHECK(count_pending(set, 0) > 0);
	weft__modules_leave(visit);

	lib = fixture_open("cc", "plain.c", "");
	if (!lib)
		SKIP("no compiler");
	CHECK_EQ(weft__modules_compile(NULL), -EAGAIN);
	CHECK_EQ(weft__modules_look(), 1);
	set = weft__modules_enter(&visit);
	libc = find_path(set, "libc.so");
	CHECK(libc && libc->id == id && weft__module_table(libc));
	while (weft__modules_compile(NULL) == 1)
		;
	CHECK_EQ(weft__modules_compile(NULL), 0);
	CHECK_EQ(count_pending(set, 0) + count_pending(set, 1), 0);
	CHECK(weft__module_table(find_path(set, "plain.c.so")) != NULL);
	CHECK(!weft__modules_stale());
	weft__modules_leave(visit);
	dlclose(lib);
	CHECK(weft__modules_stale());
	CHECK_EQ(weft__modules_refresh(), 1);
	dlclose(other);
}

#if defined(__SANITIZE_THREAD__)
#define SANITIZE_THREAD 1
#else
#define SANITIZE_THREAD 0
#endif

static int stop;
static int reported; /* the library is in the set, and not on its way out */

static void on_timer(int signal, siginfo_t *info, void *context)
{
	int saved = errno;
	__typeof__(seen) before = seen;

	(void)signal;
	(void)info;
	sample(context);
	/* What runs in a library before the set knows it, such as the loader and its constructors, must do no harm;
	 * it may be lost. */
	if (!load_relaxed(&reported))
		seen = before;
	errno = saved;
}

/* A thread that lingers in a set for long, as one does that is not let run, may hold up the sets that come after it;
 * then it is to be tried again. */
static int refresh(void)
{
	time_t begun = time(NULL);
	int r;

	while ((r = weft__modules_refresh()) == -EAGAIN && time(NULL) - begun < 30)
		;
	return r;
}

/* Opens, reports, runs and closes a library, again and again. */
static void *churn(void *arg)
{
	struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGPROF};
	struct itimerspec spec = {{0, 200000}, {0, 200000}};
	const char *path = arg;
	time_t begun = time(NULL);
	timer_t timer;

	stack_learn();
	event._sigev_un._tid = (int)syscall(SYS_gettid);
	if (!CHECK_EQ(timer_create(CLOCK_MONOTONIC, &event, &timer), 0))
		return NULL;
	/* ThreadSanitizer calls handlers later, with registers that are not true any more; it is here for the sets. */
	if (!SANITIZE_THREAD)
		timer_settime(timer, 0, &spec, NULL);
	for (int i = 0; (i < 300 && seen.samples < 4000) || (seen.samples <= 100 && !SANITIZE_THREAD); i++) {
		void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
		void (*run)(void);

		if (!CHECK(lib != NULL) || !CHECK(refresh() >= 0) || time(NULL) - begun > 60)
			break;
		*(void **)&run = dlsym(lib, "fixture_shallow");
		store_relaxed(&reported, 1);
		for (int k = 0; k < 200; k++)
			run();
		store_relaxed(&reported, 0);
		dlclose(lib);
	}
	timer_delete(timer);
	return NULL;
}

/* Another thread that is in sets all the time, so that they are not free at once. */
static void *linger(void *arg)
{
	(void)arg;
	while (!load_relaxed(&stop)) {
		uint32_t visit;
		const struct weft__modules *set = weft__modules_enter(&visit);
		uint64_t sum = 0;

		for (uint32_t i = 0; i < set->n; i++) {
			const struct weft__unwind_table *table = weft__module_table(set->module[i]);

			sum += set->module[i]->start + (table ? table->n_rows : 0);
		}
		CHECK(sum != 0);
		weft__modules_leave(visit);
	}
	return NULL;
}

TEST(samples_while_libraries_come_and_go_are_complete)
{
	struct sigaction action = {.sa_sigaction = on_timer, .sa_flags = SA_SIGINFO | SA_RESTART}, before;
	void *lib = fixture_open("cc", "plain.c", "");
	char path[256];
	pthread_t thread, other;

	if (!lib)
		SKIP("no compiler");
	dlclose(lib);
	snprintf(path, sizeof(path), "%s/plain.c.so", fixture_dir);
	CHECK(weft__modules_refresh() >= 0);
	memset(&seen, 0, sizeof(seen));
	compare_only_complete = 1;
	sigaction(SIGPROF, &action, &before);
	REQUIRE(pthread_create(&other, NULL, linger, NULL) == 0);
	if (CHECK_EQ(pthread_create(&thread, NULL, churn, path), 0))
		pthread_join(thread, NULL);
	store_relaxed(&stop, 1);
	pthread_join(other, NULL);
	signal(SIGPROF, SIG_IGN);
	sigaction(SIGPROF, &before, NULL);
	seen_print("churn");
	CHECK(seen.samples > 100 || SANITIZE_THREAD);
	CHECK(seen.complete * 1000 >= seen.samples * 995);
	weft__modules_stop();
}
