/* SPDX-License-Identifier: Apache-2.0 */
/* Unwind tables are compiled beside the program. A library with 40,000 functions takes long enough to see it, and the allocator holds the
 * thread that compiles at a place where it has no lock, or gives it no memory. */
/* serial: samples are few, and on a busy machine fewer */
#include <dlfcn.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/late.h"
#include "samples.h"

#define LARGE (1u << 20) /* bytes that only the list of this library's functions grows to */

static uint32_t hold, held, starve;

static int in_tables_thread(void)
{
	char name[16] = "";

	prctl(PR_GET_NAME, name);
	return strcmp(name, "weft-tables") == 0;
}

static void *slow_resize(void *ptr, size_t bytes, void *data)
{
	(void)data;
	if (ptr && bytes >= LARGE && load_relaxed(&hold) && in_tables_thread()) {
		store_relaxed(&held, 1u);
		while (load_relaxed(&hold))
			session_sleep_ns(MS);
	}
	if (load_relaxed(&starve) && in_tables_thread())
		return NULL;
	return realloc(ptr, bytes);
}

static void slow_release(void *ptr, void *data)
{
	(void)data;
	free(ptr);
}

__attribute__((constructor)) static void slow_use(void)
{
	static const struct weft_allocator slow = {slow_resize, slow_release, NULL};

	weft_set_allocator(&slow);
}

static char large_dir[64], large_path[96];

static void large_remove(void)
{
	unlink(large_path);
	rmdir(large_dir);
}

/* `through` calls what it is given, and keeps no frame pointer. NULL: there is no compiler. */
static void (*large_open(void **lib))(void (*)(void))
{
	static const char source[] = ".text\\n.globl through\\n.type through, @function\\nthrough:\\n.cfi_startproc\\n"
				     "subq $40, %rsp\\n.cfi_def_cfa_offset 48\\ncall *%rdi\\naddq $40, %rsp\\n"
				     ".cfi_def_cfa_offset 8\\nret\\n.cfi_endproc\\n.rept 40000\\n.cfi_startproc\\n"
				     "pushq %rbx\\n.cfi_def_cfa_offset 16\\n.cfi_offset 3, -16\\npopq %rbx\\n"
				     ".cfi_def_cfa_offset 8\\nret\\n.cfi_endproc\\n.endr\\n"
				     ".section .note.GNU-stack,\"\",@progbits\\n";
	void (*through)(void (*)(void)) = NULL;
	char command[sizeof(source) + 256];

	if (!*large_dir) {
		strcpy(large_dir, "/tmp/weft-tables-XXXXXX");
		if (!CHECK(mkdtemp(large_dir) != NULL))
			return NULL;
		snprintf(large_path, sizeof(large_path), "%s/large.so", large_dir);
		snprintf(command, sizeof(command), "printf '%%b' '%s' | cc -shared -x assembler -o %s - 2>&1", source,
			 large_path);
		atexit(large_remove);
		if (system(command) != 0)
			*large_path = 0;
	}
	*lib = *large_path ? dlopen(large_path, RTLD_NOW | RTLD_LOCAL) : NULL;
	if (*lib)
		*(void **)&through = dlsym(*lib, "through");
	return through;
}

#if defined(__x86_64__)
#define NEED_LARGE(through, lib)                                                                                       \
	do {                                                                                                           \
		(through) = large_open(&(lib));                                                                        \
		if (!(through))                                                                                        \
			SKIP("no assembler");                                                                          \
	} while (0)
#else
#define NEED_LARGE(through, lib) SKIP("the library is written for another processor")
#endif

BURNER(early)(void)
{
	uint64_t until = samples_cpu_ns(CLOCK_THREAD_CPUTIME_ID) + 50 * MS;

	while (samples_cpu_ns(CLOCK_THREAD_CPUTIME_ID) < until)
		samples_spin(1000);
}

BURNER(late)(void)
{
	uint64_t until = samples_cpu_ns(CLOCK_THREAD_CPUTIME_ID) + 50 * MS;

	while (samples_cpu_ns(CLOCK_THREAD_CPUTIME_ID) < until)
		samples_spin(1000);
}

BURNER(early_caller)(void (*through)(void (*)(void)))
{
	through(early);
	__asm__ volatile("");
}

BURNER(late_caller)(void (*through)(void (*)(void)))
{
	through(late);
	__asm__ volatile("");
}

static struct samples_function functions[] = {RANGE(early), RANGE(late), RANGE(early_caller), RANGE(late_caller)};
enum { EARLY, LATE, EARLY_CALLER, LATE_CALLER };

static struct samples result;
static const struct weft_recorder_opts sampled = {.sample_hz = 240};

/* How many threads of weft's there are. */
static int threads(void)
{
	DIR *dir = opendir("/proc/self/task");
	struct dirent *entry;
	char path[300], name[16];
	int n = 0;

	while (dir && (entry = readdir(dir))) {
		FILE *file;

		snprintf(path, sizeof(path), "/proc/self/task/%s/comm", entry->d_name);
		file = fopen(path, "re");
		n += file && fgets(name, sizeof(name), file) && strncmp(name, "weft-", 5) == 0 &&
		     strncmp(name, "weft-encoder", 12) != 0; /* which is there when a block is large */
		if (file)
			fclose(file);
	}
	if (dir)
		closedir(dir);
	return n;
}

/* Whether late's stacks lead through the library to who called it. */
static void check_late(void)
{
	if (UNDER_TSAN) /* which calls handlers later, with registers that are not true any more */
		return;
	CHECK(functions[LATE].total > 0);
	CHECK_EQ(functions[LATE_CALLER].total, functions[LATE].total);
}

static void functions_clear(void)
{
	for (int i = 0; i < 4; i++)
		functions[i].self = functions[i].total = functions[i].self_ns = functions[i].total_ns = 0;
}

TEST(start_does_not_wait_for_a_large_library_whose_stacks_are_whole_later)
{
	void (*through)(void (*)(void)) = NULL;
	struct weft_recorder *rec;
	uint64_t before;
	uint32_t tid;
	void *lib;

	NEED_LARGE(through, lib);
	store_relaxed(&hold, 1u);
	before = session_now_ns();
	rec = session_start(&sampled);
	printf("\tstarted in %.1f ms\n", (double)(session_now_ns() - before) / 1e6);
	REQUIRE(rec);
	CHECK(session_now_ns() - before < 3000 * MS);
	CHECK(WAIT_FOR(load_relaxed(&held)));
	tid = load_relaxed(&weft__own_threads.tables);
	CHECK(tid != 0);
	CHECK_EQ(threads(), 2);
	early_caller(through);
	store_relaxed(&hold, 0u);
	CHECK(WAIT_FOR(samples_tables()));
	CHECK(WAIT_FOR(threads() == 1));
	late_caller(through);
	functions_clear();
	samples_end(&result, rec, functions, 4);
	printf("\tearly %llu, to its caller %llu; late %llu, to its caller %llu; %llu lost\n",
	       (unsigned long long)functions[EARLY].total, (unsigned long long)functions[EARLY_CALLER].total,
	       (unsigned long long)functions[LATE].total, (unsigned long long)functions[LATE_CALLER].total,
	       (unsigned long long)result.lost_way);
	CHECK(UNDER_TSAN || functions[EARLY].self > 0); /* a stack that is cut keeps its leaf */
	/* What does not reach the caller is marked, so that nobody takes it for whole. */
	CHECK(UNDER_TSAN || functions[EARLY_CALLER].total + result.lost_way + result.by_fp >= functions[EARLY].total);
	check_late();
	CHECK_EQ(samples_of(&result, tid), 0);
	dlclose(lib);
	session_remove_dir();
}

/* The program waits for weft run's starter: what this waits for comes after that. */
TEST(the_starter_of_weft_run_waits_for_tables_when_the_program_goes_on)
{
	void (*through)(void (*)(void)) = NULL;
	struct weft_recorder *rec;
	uint64_t before;
	void *lib;

	NEED_LARGE(through, lib);
	store_relaxed(&hold, 1u);
	store_relaxed(&weft__late_tid, (uint32_t)syscall(SYS_gettid));
	rec = session_start(&sampled);
	REQUIRE(rec);
	before = session_now_ns();
	weft__tables_started();
	CHECK(session_now_ns() - before >= 10 * MS); /* as long as start waits in others */
	store_relaxed(&weft__late_tid, 0u);
	store_relaxed(&hold, 0u);
	CHECK(WAIT_FOR(samples_tables()));
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	dlclose(lib);
	session_remove_dir();
}

TEST(a_library_that_comes_later_is_compiled_beside_the_collector)
{
	struct weft_recorder *rec = session_start(&sampled);
	void (*through)(void (*)(void)) = NULL;
	uint64_t drains;
	void *lib;

	REQUIRE(rec);
	CHECK(WAIT_FOR(samples_tables()));
	store_relaxed(&held, 0u);
	store_relaxed(&hold, 1u);
	NEED_LARGE(through, lib);
	CHECK(WAIT_FOR(load_relaxed(&held)));
	/* The collector is not in there. */
	drains = session_stats(rec).drains;
	CHECK(WAIT_FOR(session_stats(rec).drains > drains + 2));
	CHECK(load_relaxed(&weft__own_threads.tables) != 0);
	store_relaxed(&hold, 0u);
	CHECK(WAIT_FOR(samples_tables()));
	late_caller(through);
	functions_clear();
	samples_end(&result, rec, functions, 4);
	check_late();
	dlclose(lib);
}

static void *release_later(void *arg)
{
	session_sleep_ns(20 * MS);
	store_relaxed(&hold, 0u);
	return arg;
}

TEST(stopped_paused_and_closed_while_it_compiles)
{
	void (*through)(void (*)(void)) = NULL;
	struct weft_recorder *rec = NULL;
	pthread_t thread;
	void *lib;

	NEED_LARGE(through, lib);
	for (int i = 0; i < 4; i++) {
		weft__modules_stop(); /* all tables are made again */
		store_relaxed(&held, 0u);
		store_relaxed(&hold, 1u);
		rec = session_start(&sampled);
		REQUIRE(rec);
		CHECK(WAIT_FOR(load_relaxed(&held)));
		CHECK_EQ(pthread_create(&thread, NULL, release_later, NULL), 0);
		if (i == 0) {
			CHECK_EQ(weft_recorder_stop(rec, NULL), 0);
			pthread_join(thread, NULL);
			CHECK(WAIT_FOR(threads() == 0));
			CHECK_EQ(weft_recorder_start(rec, NULL), 0);
		} else if (i == 1) {
			CHECK_EQ(weft_recorder_pause(rec), 0);
			CHECK_EQ(weft_recorder_start(rec, NULL), 0);
			pthread_join(thread, NULL);
		} else {
			CHECK_EQ(weft_recorder_close(rec, NULL), 0);
			pthread_join(thread, NULL);
			CHECK(WAIT_FOR(threads() == 0));
			session_remove_dir();
			continue;
		}
		CHECK(WAIT_FOR(samples_tables()));
		late_caller(through);
		functions_clear();
		samples_end(&result, rec, functions, 4);
		check_late();
	}
	dlclose(lib);
}

TEST(a_library_goes_while_it_is_compiled)
{
	void (*through)(void (*)(void)) = NULL;
	struct weft_recorder *rec;
	void *lib;

	NEED_LARGE(through, lib);
	weft__modules_stop();
	store_relaxed(&held, 0u);
	store_relaxed(&hold, 1u);
	rec = session_start(&sampled);
	REQUIRE(rec);
	CHECK(WAIT_FOR(load_relaxed(&held)));
	dlclose(lib);
	store_relaxed(&hold, 0u);
	CHECK(WAIT_FOR(!load_relaxed(&weft__own_threads.tables)));
	NEED_LARGE(through, lib);
	CHECK(WAIT_FOR(samples_tables()));
	late_caller(through);
	functions_clear();
	samples_end(&result, rec, functions, 4);
	check_late();
	dlclose(lib);
}

TEST(without_memory_it_is_tried_again)
{
	void (*through)(void (*)(void)) = NULL;
	struct weft_recorder *rec;
	void *lib;

	NEED_LARGE(through, lib);
	weft__modules_stop();
	store_relaxed(&starve, 1u);
	rec = session_start(&sampled);
	REQUIRE(rec);
	CHECK(WAIT_FOR(!load_relaxed(&weft__own_threads.tables)));
	CHECK(weft__modules_stale());
	early_caller(through);
	store_relaxed(&starve, 0u);
	CHECK(WAIT_FOR(samples_tables()));
	late_caller(through);
	functions_clear();
	samples_end(&result, rec, functions, 4);
	CHECK(UNDER_TSAN || functions[EARLY].self > 0);
	check_late();
	dlclose(lib);
}

/* The child's recorder is a new one, in the same directory. */
static int child_of_a_compiling_parent(void (*through)(void (*)(void)), struct weft_recorder *rec)
{
	weft_test_failures = 0;
	store_relaxed(&hold, 0u);
	CHECK(WAIT_FOR(samples_tables()));
	late_caller(through);
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	functions_clear();
	samples_read(&result, session_dir, functions, 4);
	check_late();
	return weft_test_failures ? 1 : 0;
}

TEST(a_fork_while_it_compiles)
{
	struct weft_recorder_opts opts = sampled;
	void (*through)(void (*)(void)) = NULL;
	struct weft_recorder *rec;
	pid_t pid;
	void *lib;

	SKIP_UNDER_TSAN();
	NEED_LARGE(through, lib);
	for (int i = 0; i < 2; i++) {
		weft__modules_stop();
		store_relaxed(&held, 0u);
		store_relaxed(&hold, 1u);
		opts.on_fork = i ? WEFT_FORK_RESTART : WEFT_FORK_OFF;
		rec = session_start(&opts);
		REQUIRE(rec);
		CHECK(WAIT_FOR(load_relaxed(&held)));
		pid = fork();
		if (pid == 0) {
			void *again;

			if (i)
				_exit(child_of_a_compiling_parent(through, rec));
			/* The loader is not locked. */
			again = dlopen(large_path, RTLD_NOW | RTLD_LOCAL);
			_exit(again && weft_recorder_close(rec, NULL) == 0 ? 0 : 1);
		}
		CHECK_EQ(session_wait(pid), 0);
		store_relaxed(&hold, 0u);
		CHECK(WAIT_FOR(samples_tables()));
		late_caller(through);
		functions_clear();
		samples_end(&result, rec, functions, 4);
		check_late();
	}
	dlclose(lib);
}

TEST(the_process_ends_while_it_compiles)
{
	void (*through)(void (*)(void)) = NULL;
	uint64_t before;
	pid_t pid;
	void *lib;

	SKIP_UNDER_TSAN();
	NEED_LARGE(through, lib);
	for (int i = 0; i < 3; i++) {
		session_fresh_dir();
		weft__modules_stop();
		before = session_now_ns();
		pid = fork();
		if (pid == 0) {
			struct weft_recorder_opts opts = sampled;

			opts.dir = session_dir;
			if (!session_start(&opts))
				_exit(1);
			*large_dir = *large_path = 0; /* they are the parent's */
			exit(weft_test_failures ? 1 : 0);
		}
		CHECK_EQ(session_wait(pid), 0);
		printf("\t%.1f ms\n", (double)(session_now_ns() - before) / 1e6);
		CHECK_EQ(tally_files(session_dir, ".active"), 0);
		session_remove_dir();
	}
	dlclose(lib);
}

/* Every clone from now on answers EAGAIN. */
static int refuse_threads(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EAGAIN),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof(code) / sizeof(code[0]), code};

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static char refused_fact[256];

static void refused_read(const struct weft_segment *seg, const struct weft_event_view *ev, void *data)
{
	const char *fact = weft_segment_fact(seg, "degraded.tables");

	(void)ev;
	(void)data;
	snprintf(refused_fact, sizeof(refused_fact), "%s", fact ? fact : "");
}

static int refused_main(void (*through)(void (*)(void)))
{
	struct weft_recorder_opts opts = sampled;
	struct weft_recorder *rec;
	struct tally tally;

	weft_test_failures = 0;
	opts.dir = session_dir;
	rec = session_start(&opts);
	CHECK_EQ(weft_recorder_pause(rec), 0);
	CHECK(WAIT_FOR(threads() == 1));
	weft__modules_stop();
	CHECK_EQ(refuse_threads(), 0);
	CHECK_EQ(weft_recorder_start(rec, NULL), 0);
	CHECK(samples_tables());
	late_caller(through);
	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	functions_clear();
	samples_read(&result, session_dir, functions, 4);
	check_late();
	tally_init(&tally, 0);
	tally.each = refused_read;
	tally_dir(&tally, session_dir);
	tally_fini(&tally);
	printf("\t%s\n", refused_fact);
	CHECK(strstr(refused_fact, weft_strerror(-EAGAIN)) != NULL);
	return weft_test_failures ? 1 : 0;
}

TEST(without_a_thread_who_starts_compiles)
{
	void (*through)(void (*)(void)) = NULL;
	pid_t pid;
	void *lib;

	SKIP_UNDER_TSAN();
	NEED_LARGE(through, lib);
	session_fresh_dir();
	pid = fork();
	if (pid == 0) {
		fflush(stdout);
		_exit(refused_main(through));
	}
	CHECK_EQ(session_wait(pid), 0);
	session_remove_dir();
	dlclose(lib);
}

TEST(starts_and_pauses_while_libraries_come_and_go)
{
	struct weft_recorder *rec = session_start(&sampled);
	void (*through)(void (*)(void)) = NULL;
	void *lib = NULL;

	REQUIRE(rec);
	for (int i = 0; i < SCALED(100, 20); i++) {
		if (lib)
			dlclose(lib), lib = NULL;
		else
			NEED_LARGE(through, lib);
		CHECK_EQ(weft_recorder_pause(rec), 0);
		CHECK_EQ(weft_recorder_start(rec, NULL), 0);
	}
	if (!lib)
		NEED_LARGE(through, lib);
	CHECK(WAIT_FOR(samples_tables()));
	late_caller(through);
	functions_clear();
	samples_end(&result, rec, functions, 4);
	check_late();
	CHECK(WAIT_FOR(threads() == 0));
	dlclose(lib);
}
