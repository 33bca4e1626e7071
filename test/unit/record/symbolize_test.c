/* SPDX-License-Identifier: Apache-2.0 */
/* Names inside the process, with the real plugin that was built beside this test. */
#include "record/symbolize.h"

#include <dirent.h>
#include <sys/wait.h>
#include <time.h>

#include "../analyze/codefile.h"
#include "record/setup.h"
#include "weft/weft.h"

static char dir[256], plugin[1024];
static struct weft_module module;
static struct weft_frame frame;

__attribute__((noinline)) static void *a_function_to_be_named(void)
{
	return (char *)__builtin_return_address(0) - 1;
}

static bool begin(void)
{
	const char *build = getenv("WEFT_BUILD");

	snprintf(plugin, sizeof(plugin), "%s/libweft-symbolize.so", build ? build : "");
	if (!build || access(plugin, R_OK) != 0)
		return false;
	segfile_dir(dir, sizeof(dir));
	CHECK(a_function_to_be_named() != NULL);
	CHECK(codefile_module(&module, 1, (void *)(uintptr_t)a_function_to_be_named));
	frame = (struct weft_frame){1, (uint64_t)(uintptr_t)a_function_to_be_named - module.start};
	return true;
}

#define BEGIN                                                                                                          \
	if (!begin())                                                                                                  \
	SKIP("there is no libweft-symbolize.so in $WEFT_BUILD")

static const char *path_of(int i)
{
	static char path[512];

	snprintf(path, sizeof(path), "%s/%03d.weft", dir, i);
	return path;
}

static void write_segment(int i)
{
	struct weft_stack stack = {1, WEFT_STACK_COMPLETE, 1, &frame};
	struct codefile file = {.sequence = (uint64_t)i,
				.pid = "4242",
				.modules = &module,
				.n_modules = 1,
				.stacks = &stack,
				.n_stacks = 1,
				.n_blocks = 1};

	close(codefile_write(&file, path_of(i)));
}

static bool has_name(int i)
{
	struct weft_segment *seg = NULL;
	const struct weft_symbol_def *symbol;
	bool named;

	if (weft_segment_open(&seg, path_of(i), NULL) < 0)
		return false;
	symbol = weft_segment_symbol(seg, frame.module, frame.offset);
	named = symbol && symbol->n_frames && !strcmp(symbol->frames[0].function, "a_function_to_be_named");
	weft_segment_close(seg);
	return named;
}

static void finish(int n)
{
	while (n-- > 0)
		unlink(path_of(n));
	CHECK_EQ(rmdir(dir), 0);
}

/* The value of a fact that is reported, or NULL. */
static const char *fact_of(struct weft__symbolize *s, char *text, size_t bytes)
{
	struct weft__defs defs = {0};
	bool any;

	weft__symbolize_facts(s, &defs);
	any = defs.n > 0;
	snprintf(text, bytes, "%.*s", (int)defs.out.n, defs.out.bytes ? (const char *)defs.out.bytes : "");
	weft__defs_fini(&defs);
	return any ? text : NULL;
}

TEST(sealed_segments_get_names)
{
	struct weft__symbolize *s = NULL;
	char text[1024];

	BEGIN;
	CHECK_EQ(weft__symbolize_open(&s, plugin), 0);
	for (int i = 0; i < 5; i++) {
		write_segment(i);
		weft__symbolize_submit(s, path_of(i));
	}
	weft__symbolize_drain(s);
	CHECK_EQ(weft__symbolize_counts(s).done, 5);
	REQUIRE(fact_of(s, text, sizeof(text)) != NULL);
	CHECK(strstr(text, "wanted") && !strstr(text, "degraded"));
	for (int i = 0; i < 5; i++)
		CHECK(has_name(i));
	weft__symbolize_close(s);
	finish(5);
}

TEST(close_waits_for_what_was_submitted)
{
	struct weft__symbolize *s = NULL;

	BEGIN;
	CHECK_EQ(weft__symbolize_open(&s, plugin), 0);
	for (int i = 0; i < 5; i++) {
		write_segment(i);
		weft__symbolize_submit(s, path_of(i));
	}
	weft__symbolize_close(s);
	for (int i = 0; i < 5; i++)
		CHECK(has_name(i));
	finish(5);
}

TEST(without_the_plugin_there_is_a_reason_and_nobody_waits)
{
	struct weft__symbolize *s = NULL;
	char text[2048];

	CHECK_EQ(weft__symbolize_open(&s, "/nonexistent/libweft-symbolize.so"), 0);
	weft__symbolize_submit(s, "/nonexistent/one.weft");
	weft__symbolize_drain(s);
	REQUIRE(fact_of(s, text, sizeof(text)) != NULL);
	CHECK(strstr(text, "degraded.symbolize") != NULL);
	CHECK(strstr(text, "/nonexistent/libweft-symbolize.so") != NULL);
	CHECK(strstr(text, "run weft symbolize") != NULL);
	CHECK_EQ(weft__symbolize_counts(s).failed, 1);
	weft__symbolize_close(s);
}

TEST(a_library_that_is_not_the_plugin_is_recorded)
{
	struct weft__symbolize *s = NULL;
	char text[2048];

	CHECK_EQ(weft__symbolize_open(&s, "libc.so.6"), 0);
	REQUIRE(fact_of(s, text, sizeof(text)) != NULL);
	CHECK(strstr(text, "not of this version") != NULL);
	weft__symbolize_close(s);
}

TEST(calls_without_a_symbolizer_do_nothing)
{
	weft__symbolize_submit(NULL, "x");
	weft__symbolize_drain(NULL);
	weft__symbolize_facts(NULL, NULL);
	weft__symbolize_close(NULL);
	CHECK_EQ(weft__symbolize_counts(NULL).done, 0);
}

/* Segments may be gone, and may be no segments. */
TEST(bad_segments_harm_nobody)
{
	struct weft__symbolize *s = NULL;
	FILE *junk;

	BEGIN;
	CHECK_EQ(weft__symbolize_open(&s, plugin), 0);
	junk = fopen(path_of(0), "w");
	REQUIRE(junk != NULL);
	fputs("junk", junk);
	fclose(junk);
	write_segment(1);
	weft__symbolize_submit(s, path_of(0));
	weft__symbolize_submit(s, path_of(2));
	weft__symbolize_submit(s, path_of(1));
	weft__symbolize_drain(s);
	CHECK_EQ(weft__symbolize_counts(s).done, 1);
	CHECK_EQ(weft__symbolize_counts(s).failed, 2);
	CHECK(has_name(1));
	weft__symbolize_close(s);
	finish(2);
}

/* What is too much is dropped and counted; submitting does not wait. */
TEST(more_than_can_wait_is_counted)
{
	struct weft__symbolize *s = NULL;
	struct weft__symbolize_counts counts;
	uint64_t all = 0;

	BEGIN;
	CHECK_EQ(weft__symbolize_open(&s, plugin), 0);
	do {
		weft__symbolize_submit(s, "/nonexistent/one.weft");
		counts = weft__symbolize_counts(s);
	} while (++all < 1000000 && !counts.dropped);
	weft__symbolize_drain(s);
	counts = weft__symbolize_counts(s);
	CHECK_EQ(counts.done, 0);
	CHECK_EQ(counts.failed, all);
	weft__symbolize_close(s);
	finish(0);
}

/* The value of a line of a thread's status. */
static bool status_of(const char *tid, const char *key, char *value, size_t bytes)
{
	char path[300], line[256];
	bool found = false;
	FILE *in;

	snprintf(path, sizeof(path), "/proc/self/task/%.200s/status", tid);
	in = fopen(path, "r");
	while (in && !found && fgets(line, sizeof(line), in)) {
		found = !strncmp(line, key, strlen(key));
		if (found)
			snprintf(value, bytes, "%s", line + strlen(key) + 1);
	}
	if (in)
		fclose(in);
	value[strcspn(value, "\n")] = 0;
	return found;
}

TEST(the_thread_has_a_name_and_takes_no_signal)
{
	struct weft__symbolize *s = NULL;
	DIR *tasks;
	struct dirent *task;
	char name[64], blocked[64] = "";
	bool found = false;

	BEGIN;
	CHECK_EQ(weft__symbolize_open(&s, plugin), 0);
	tasks = opendir("/proc/self/task");
	while (tasks && (task = readdir(tasks))) {
		if (!status_of(task->d_name, "Name:", name, sizeof(name)) || strcmp(name, "weft-symbolize") != 0)
			continue;
		found = true;
		CHECK(status_of(task->d_name, "SigBlk:", blocked, sizeof(blocked)));
	}
	closedir(tasks);
	CHECK(found);
	/* All but SIGKILL, SIGSTOP and the two that libc keeps for itself. */
	CHECK_EQ(strtoull(blocked, NULL, 16) | 1ull << 8 | 1ull << 18 | 3ull << 31, UINT64_MAX);
	weft__symbolize_close(s);
	finish(0);
}

/* A child has no such thread and does not wait for one; its parent goes on. */
TEST(a_fork_in_the_middle_harms_nobody)
{
	struct weft__symbolize *s = NULL;
	int status = -1;
	pid_t pid;

#ifdef __SANITIZE_THREAD__
	SKIP("the thread sanitizer allows no threads in such a child");
#elif defined(__SANITIZE_ADDRESS__)
	SKIP("the allocator of this address sanitizer stays locked in a child when another thread was in it");
#endif
	BEGIN;
	CHECK_EQ(weft__symbolize_open(&s, plugin), 0);
	for (int i = 0; i < 10; i++) {
		write_segment(i);
		weft__symbolize_submit(s, path_of(i));
	}
	pid = fork();
	if (pid == 0) {
		struct weft__symbolize *own = NULL;

		weft__symbolize_forked(s);
		write_segment(10);
		if (weft__symbolize_open(&own, plugin) < 0)
			_exit(1);
		weft__symbolize_submit(own, path_of(10));
		weft__symbolize_close(own);
		_exit(has_name(10) ? 0 : 2);
	}
	weft__symbolize_close(s);
	for (int i = 0; i < 10; i++)
		CHECK(has_name(i));
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	finish(11);
}

/* A plugin that is not done before there is a file "go". */
static bool slow_plugin(char *path, size_t bytes)
{
	static const char source[] =
		"#include <unistd.h>\n#include \"base/plugin.h\"\n"
		"static int begin(void **s, char *w, size_t n) { *s = 0; return !w + !n; }\n"
		"static int run(void *s, const char *p, char *w, size_t n) {\n"
		"	while (access(GO, F_OK)) usleep(1000);\n	return !s && !p && !w && !n; }\n"
		"static void end(void *s) { (void)s; }\n"
		"static const struct weft_symbolize_plugin slow = {WEFT_SYMBOLIZE_ABI, begin, run, end};\n"
		"weft_symbolize_plugin_fn weft_symbolize_plugin;\n"
		"const struct weft_symbolize_plugin *weft_symbolize_plugin(void) { return &slow; }\n";
	const char *tree = getenv("WEFT_SOURCE");
	char command[2048];
	FILE *file;

	snprintf(path, bytes, "%s/slow.c", dir);
	file = fopen(path, "we");
	if (!file || fputs(source, file) < 0 || fclose(file) != 0)
		return false;
	snprintf(path, bytes, "%s/slow.so", dir);
	snprintf(command, sizeof(command), "cc -shared -fPIC -D_GNU_SOURCE -D 'GO=\"%s/go\"' -I %s/src -o %s %s/slow.c",
		 dir, tree ? tree : ".", path, dir);
	return system(command) == 0;
}

struct stopper {
	struct weft_recorder *rec;
	int done;
};

static void *stop_main(void *data)
{
	struct stopper *stopper = data;

	CHECK_EQ(weft_recorder_stop(stopper->rec, NULL), 0);
	__atomic_store_n(&stopper->done, 1, __ATOMIC_RELEASE);
	return NULL;
}

/* Nor does anybody else who uses the recorder. */
TEST(a_fork_does_not_wait_for_names_that_a_stop_waits_for)
{
	struct weft_recorder_opts opts = {.size = sizeof(opts), .dir = dir, .sample_hz = WEFT_OFF};
	struct weft_recorder_stats stats = {.size = sizeof(stats)};
	struct stopper stopper = {NULL, 0};
	char path[512], command[600];
	pthread_t thread;
	int status = -1;
	pid_t pid;

	segfile_dir(dir, sizeof(dir));
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	if (!slow_plugin(path, sizeof(path))) {
		CHECK_EQ(system(command), 0);
		SKIP("no compiler");
	}
	CHECK_EQ(weft_recorder_open(&stopper.rec, &opts, NULL), 0);
	CHECK_EQ(weft__symbolize_open(&stopper.rec->collector.segments.symbolize, path), 0);
	CHECK_EQ(weft_recorder_start(stopper.rec, NULL), 0);
	weft_poll_begin(1, 0);
	weft_poll_end();
	CHECK_EQ(pthread_create(&thread, NULL, stop_main, &stopper), 0);
	do
		CHECK_EQ(weft_recorder_stats(stopper.rec, &stats), 0);
	while (stats.state != WEFT_STATE_IDLE);
	pid = fork();
	if (pid == 0)
		_exit(0);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	CHECK(!__atomic_load_n(&stopper.done, __ATOMIC_ACQUIRE));
	snprintf(path, sizeof(path), "%s/go", dir);
	close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	/* Closed while the other is still in there, perhaps. */
	CHECK_EQ(weft_recorder_close(stopper.rec, NULL), 0);
	pthread_join(thread, NULL);
	CHECK(stopper.done);
	CHECK_EQ(system(command), 0);
}
