/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/annotate.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "codefile.h"
#include "segment/reader.h"
#include "weft/hooks.h"

static char dir[256];
static const char *const one[] = {"one.weft",      "two.weft", "out.weft", "one.weft.active",
				  "perf-4242.map", "kallsyms", NULL};

__attribute__((noinline)) static void *caller(void)
{
	return (char *)__builtin_return_address(0) - 1;
}

static int inner_line, outer_line;

__attribute__((always_inline)) static inline void *inner_function(void)
{
	void *here = caller();
	inner_line = __LINE__ - 1;
	return here;
}

__attribute__((noinline)) static void *outer_function(void)
{
	void *here = inner_function();
	outer_line = __LINE__ - 1;
	return here;
}

/* Two modules, this program and libc, and a stack through both and through nothing. */
static struct scene {
	struct weft_module modules[4];
	struct weft_frame frames[8];
	struct weft_stack stacks[2];
	struct codefile file;
} scene;

static bool set_scene(void)
{
	uint64_t own = (uint64_t)(uintptr_t)outer_function();

	memset(&scene, 0, sizeof(scene));
	segfile_dir(dir, sizeof(dir));
	if (!CHECK(codefile_module(&scene.modules[0], 1, (void *)(uintptr_t)own)) ||
	    !CHECK(codefile_module(&scene.modules[1], 2, dlsym(RTLD_DEFAULT, "l64a"))))
		return false;
	scene.frames[0] = (struct weft_frame){1, own - scene.modules[0].start};
	scene.frames[1] =
		(struct weft_frame){2, (uint64_t)(uintptr_t)dlsym(RTLD_DEFAULT, "l64a") - scene.modules[1].start};
	scene.frames[2] = (struct weft_frame){0, 0x123456};
	scene.frames[3] = scene.frames[0];
	scene.stacks[0] = (struct weft_stack){1, WEFT_STACK_COMPLETE, 3, scene.frames};
	scene.stacks[1] = (struct weft_stack){2, WEFT_STACK_COMPLETE, 1, scene.frames + 3};
	scene.file = (struct codefile){.pid = "4242",
				       .modules = scene.modules,
				       .n_modules = 2,
				       .stacks = scene.stacks,
				       .n_stacks = 2,
				       .n_blocks = 3};
	return true;
}

static const char *file_of(const char *name)
{
	static char paths[4][512];
	static unsigned next;
	char *path = paths[next++ % 4];

	snprintf(path, sizeof(paths[0]), "%s/%s", dir, name);
	return path;
}

static void write_scene(const char *name)
{
	close(codefile_write(&scene.file, file_of(name)));
}

static int annotate_with(const struct weft__annotate_opts *opts, const char *path, const char *out,
			 struct weft__annotated *done, struct weft_error *err)
{
	struct weft__annotator *annotator = NULL;
	int r = weft__annotator_open(&annotator, opts, err);

	if (!r)
		r = weft__annotator_run(annotator, path, out, done, err);
	done->modules = NULL;
	weft__annotator_close(annotator);
	return r;
}

static int annotate(const char *path, struct weft__annotated *done)
{
	struct weft__annotate_opts opts = {.symbols = {.debug_dirs = "/nonexistent", .no_debuginfod = true}};
	struct weft_error err = {0};
	int r = annotate_with(&opts, path, NULL, done, &err);

	if (r)
		printf("\t%s\n", err.msg);
	return r;
}

static uint64_t count_events(struct weft_segment *seg)
{
	struct weft_cursor *cursor = NULL;
	struct weft_event_view ev;
	uint64_t n = 0;

	if (!CHECK_EQ(weft_cursor_open(&cursor, seg, WEFT_ORDER_TIME, 0, UINT64_MAX, NULL), 0))
		return 0;
	while (weft_cursor_next(cursor, &ev) > 0)
		n++;
	weft_cursor_close(cursor);
	return n;
}

/* The symbol of a frame of the scene in a segment, or NULL; the segment stays open until the next call. */
static struct weft_segment *open_again(const char *name)
{
	static struct weft_segment *seg;

	weft_segment_close(seg);
	seg = NULL;
	if (name)
		CHECK_EQ(weft_segment_open(&seg, file_of(name), NULL), 0);
	return seg;
}

static const char *function_of(struct weft_segment *seg, const struct weft_frame *frame)
{
	const struct weft_symbol_def *symbol = weft_segment_symbol(seg, frame->module, frame->offset);

	return symbol && symbol->n_frames ? symbol->frames[0].function : "";
}

static void finish(void)
{
	open_again(NULL);
	segfile_remove(dir, one);
}

TEST(names_lines_and_inlined_functions_come_into_the_segment)
{
	const struct weft_symbol_def *symbol;
	struct weft__annotated done;
	struct weft_segment *seg;

	REQUIRE(set_scene());
	write_scene("one.weft");
	REQUIRE(annotate(file_of("one.weft"), &done) == 0);
	CHECK_EQ(done.stacks, 2);
	CHECK_EQ(done.places, 3);
	CHECK_EQ(done.named, 2);
	CHECK_EQ(done.added, 2);
	CHECK(done.written);
	CHECK_EQ(done.damaged_places, 0);
	seg = open_again("one.weft");
	REQUIRE(seg != NULL);
	symbol = weft_segment_symbol(seg, 1, scene.frames[0].offset);
	REQUIRE(symbol != NULL);
	if (!CHECK_EQ(symbol->n_frames, 2))
		return;
	CHECK_STR(symbol->frames[0].function, "inner_function");
	CHECK_EQ(symbol->frames[0].line, inner_line);
	CHECK_EQ(symbol->frames[0].inlined, 1);
	CHECK(strstr(symbol->frames[0].file, "annotate_test.c") != NULL);
	CHECK_STR(symbol->frames[1].function, "outer_function");
	CHECK_EQ(symbol->frames[1].line, outer_line);
	CHECK_EQ(symbol->frames[1].inlined, 0);
	CHECK_STR(function_of(seg, &scene.frames[1]), "l64a");
	CHECK(weft_segment_symbol(seg, 0, 0x123456) == NULL);
	CHECK_EQ(weft_segment_info(seg)->sealed, 1);
	CHECK_EQ(count_events(seg), 6);
	CHECK_EQ(weft_segment_damage(seg).places, 0);
	finish();
}

TEST(each_name_is_there_once_and_nothing_is_done_twice)
{
	struct weft__annotated done;
	struct weft_segment *seg;
	struct stat before, after;
	size_t n_files = 0;

	REQUIRE(set_scene());
	/* Another place of the same function: its names are there already. */
	scene.frames[3].offset++;
	write_scene("one.weft");
	CHECK_EQ(chmod(file_of("one.weft"), 0604), 0);
	REQUIRE(annotate(file_of("one.weft"), &done) == 0);
	CHECK_EQ(done.added, 3);
	seg = open_again("one.weft");
	REQUIRE(seg != NULL);
	for (size_t i = 0; i < seg->names.n; i++) {
		const struct weft_string_def *names = seg->names.items;

		n_files += strstr(names[i].text, "annotate_test.c") != NULL;
		for (size_t j = 0; j < i; j++)
			CHECK(strcmp(names[i].text, names[j].text) != 0);
	}
	CHECK_EQ(n_files, 1);
	stat(file_of("one.weft"), &before);
	CHECK_EQ(before.st_mode & 07777, 0604);
	REQUIRE(annotate(file_of("one.weft"), &done) == 0);
	CHECK_EQ(done.named, 3);
	CHECK_EQ(done.added, 0);
	CHECK(!done.written);
	stat(file_of("one.weft"), &after);
	CHECK_EQ(before.st_ino, after.st_ino);
	finish();
}

TEST(a_link_goes_on_pointing_to_the_segment)
{
	struct weft__annotated done;
	struct stat st;

	REQUIRE(set_scene());
	write_scene("one.weft");
	CHECK_EQ(symlink("one.weft", file_of("two.weft")), 0);
	CHECK_EQ(annotate(file_of("two.weft"), &done), 0);
	CHECK_EQ(lstat(file_of("two.weft"), &st), 0);
	CHECK(S_ISLNK(st.st_mode));
	CHECK_STR(function_of(open_again("one.weft"), &scene.frames[0]), "inner_function");
	finish();
}

/* Another machine has another build at the same path: better no names than wrong ones. */
TEST(a_file_of_another_build_is_not_used)
{
	struct weft__annotate_opts opts = {.symbols = {.debug_dirs = "/nonexistent", .no_debuginfod = true}};
	struct weft__annotator *annotator = NULL;
	struct weft__annotated done;

	REQUIRE(set_scene());
	if (!scene.modules[0].build_id_n) {
		finish();
		SKIP("the linker gives no build-ids");
	}
	scene.modules[0].build_id[0] ^= 0xff;
	write_scene("one.weft");
	CHECK_EQ(weft__annotator_open(&annotator, &opts, NULL), 0);
	CHECK_EQ(weft__annotator_run(annotator, file_of("one.weft"), NULL, &done, NULL), 0);
	CHECK_EQ(done.modules[0].places, 1);
	CHECK_EQ(done.modules[0].named, 0);
	CHECK(strstr(done.modules[0].why, "build-id") != NULL);
	CHECK_EQ(done.modules[1].named, 1);
	weft__annotator_close(annotator);
	CHECK_STR(function_of(open_again("one.weft"), &scene.frames[0]), "");
	finish();
}

static bool copy_file(const char *from, const char *to)
{
	char command[2 * PATH_MAX];

	snprintf(command, sizeof(command), "cp '%s' '%s'", from, to);
	return system(command) == 0;
}

/* Files of the machine that recorded, below a root; and the second segment of a recording asks nobody any more. */
TEST(the_second_segment_needs_no_file_that_the_first_needed)
{
	char copy[PATH_MAX];
	struct weft__annotate_opts opts = {
		.symbols = {.root = dir, .debug_dirs = "/nonexistent", .no_debuginfod = true}};
	struct weft__annotator *annotator = NULL;
	struct weft__annotated done;

	REQUIRE(set_scene());
	snprintf(copy, sizeof(copy), "%s/program", dir);
	REQUIRE(copy_file(scene.modules[0].path, copy));
	scene.modules[0].path = "/program";
	scene.file.n_modules = 1;
	write_scene("one.weft");
	/* After a restart it would lie elsewhere. */
	scene.modules[0].start += 0x10000;
	scene.modules[0].end += 0x10000;
	scene.file.sequence = 1;
	write_scene("two.weft");
	CHECK_EQ(weft__annotator_open(&annotator, &opts, NULL), 0);
	CHECK_EQ(weft__annotator_run(annotator, file_of("one.weft"), NULL, &done, NULL), 0);
	CHECK_EQ(done.named, 1);
	CHECK_EQ(unlink(copy), 0);
	CHECK_EQ(weft__annotator_run(annotator, file_of("two.weft"), NULL, &done, NULL), 0);
	CHECK_EQ(done.named, 1);
	weft__annotator_close(annotator);
	CHECK_STR(function_of(open_again("one.weft"), &scene.frames[0]), "inner_function");
	CHECK_STR(function_of(open_again("two.weft"), &scene.frames[0]), "inner_function");
	finish();
}

static void spoil(const char *path, off_t at)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	uint8_t byte;

	CHECK(pread(fd, &byte, 1, at) == 1);
	byte ^= 0x55;
	CHECK(pwrite(fd, &byte, 1, at) == 1);
	close(fd);
}

TEST(damage_stays_reported_and_costs_no_block_that_reads)
{
	struct weft__annotated done;
	struct weft_segment *seg;
	uint64_t second;

	REQUIRE(set_scene());
	write_scene("one.weft");
	seg = open_again("one.weft");
	REQUIRE(seg && seg->n_blocks == 4);
	second = seg->blocks[2].offset;
	spoil(file_of("one.weft"), (off_t)second + 50);
	REQUIRE(annotate(file_of("one.weft"), &done) == 0);
	CHECK_EQ(done.added, 2);
	seg = open_again("one.weft");
	REQUIRE(seg != NULL);
	CHECK_EQ(count_events(seg), 4);
	CHECK_EQ(weft_segment_damage(seg).places, 1);
	CHECK_EQ(weft_segment_damage(seg).first_offset, second);
	CHECK_STR(function_of(seg, &scene.frames[0]), "inner_function");
	/* Once more, as a user might. */
	CHECK_EQ(annotate(file_of("one.weft"), &done), 0);
	CHECK_EQ(done.damaged_places, 1);
	CHECK(!done.written);
	finish();
}

TEST(a_cut_segment_keeps_what_it_had)
{
	struct weft__annotated done;
	struct weft_segment *seg;
	uint64_t last;

	REQUIRE(set_scene());
	write_scene("one.weft");
	seg = open_again("one.weft");
	REQUIRE(seg && seg->n_blocks == 4);
	last = seg->blocks[3].offset;
	CHECK_EQ(truncate(file_of("one.weft"), (off_t)last + 60), 0);
	REQUIRE(annotate(file_of("one.weft"), &done) == 0);
	CHECK_EQ(done.damaged_places, 1);
	seg = open_again("one.weft");
	REQUIRE(seg != NULL);
	CHECK_EQ(count_events(seg), 4);
	CHECK_EQ(weft_segment_info(seg)->sealed, 1);
	CHECK_EQ(weft_segment_damage(seg).places, 1);
	CHECK_STR(function_of(seg, &scene.frames[1]), "l64a");
	finish();
}

TEST(a_segment_that_is_being_written_is_refused)
{
	struct weft__annotate_opts opts = {.symbols = {.no_debuginfod = true}};
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	struct weft__annotated done;
	struct weft_error err = {0};
	int fd;

	REQUIRE(set_scene());
	scene.file.unsealed = 1;
	fd = codefile_write(&scene.file, file_of("one.weft.active"));
	REQUIRE(fcntl(fd, F_OFD_SETLK, &lock) == 0);
	CHECK_EQ(annotate_with(&opts, file_of("one.weft.active"), NULL, &done, &err), -WEFT_E_BUSY);
	CHECK(strstr(err.msg, "a living process writes it") != NULL);
	CHECK_EQ(annotate_with(&opts, file_of("one.weft.active"), file_of("out.weft"), &done, &err), -WEFT_E_BUSY);
	close(fd);
	CHECK_EQ(annotate_with(&opts, file_of("one.weft.active"), NULL, &done, &err), -WEFT_E_STATE);
	CHECK(strstr(err.msg, "weft recover") != NULL);
	CHECK_EQ(annotate_with(&opts, file_of("one.weft.active"), file_of("out.weft"), &done, &err), 0);
	CHECK_EQ(count_events(open_again("out.weft")), 6);
	finish();
}

static int files_in(const char *path)
{
	DIR *d = opendir(path);
	struct dirent *entry;
	int n = 0;

	while (d && (entry = readdir(d)))
		n += entry->d_name[0] != '.';
	if (d)
		closedir(d);
	return n;
}

TEST(a_full_disk_leaves_the_old_segment)
{
	struct rlimit old, small;
	struct weft__annotated done;
	struct stat st;
	void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);

	REQUIRE(set_scene());
	write_scene("one.weft");
	stat(file_of("one.weft"), &st);
	getrlimit(RLIMIT_FSIZE, &old);
	small = old;
	small.rlim_cur = (rlim_t)st.st_size; /* as large as it was, but no larger */
	setrlimit(RLIMIT_FSIZE, &small);
	CHECK(annotate(file_of("one.weft"), &done) < 0);
	setrlimit(RLIMIT_FSIZE, &old);
	signal(SIGXFSZ, handler);
	CHECK_EQ(count_events(open_again("one.weft")), 6);
	CHECK_EQ(files_in(dir), 1);
	finish();
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* A child that annotates, killed after that time, or never. */
static void annotate_in_child(uint64_t kill_ns)
{
	struct timespec wait = {(time_t)(kill_ns / 1000000000u), (long)(kill_ns % 1000000000u)};
	pid_t pid = fork();

	if (pid == 0) {
		struct weft__annotated done;

		_exit(annotate(file_of("one.weft"), &done) ? 1 : 0);
	}
	if (kill_ns) {
		nanosleep(&wait, NULL);
		kill(pid, SIGKILL);
	}
	waitpid(pid, NULL, 0);
}

/* Killed at any moment, there is the old one or the new one. */
TEST(a_kill_leaves_the_old_segment_or_the_new_one)
{
	uint32_t seed = 1, n_old = 0, n_new = 0;
	uint64_t all_ns;
	char command[600];

	REQUIRE(set_scene());
	write_scene("one.weft");
	all_ns = now_ns();
	annotate_in_child(0);
	all_ns = now_ns() - all_ns;
	for (int i = 0; i < 60; i++) {
		struct weft_segment *seg;

		write_scene("one.weft");
		seed = seed * 1664525 + 1013904223;
		annotate_in_child(1 + all_ns / 1000 * (seed >> 8) / (1u << 24) * 1200);
		seg = open_again("one.weft");
		if (!CHECK(seg != NULL))
			break;
		CHECK_EQ(count_events(seg), 6);
		CHECK_EQ(weft_segment_damage(seg).places, 0);
		CHECK(seg->symbols.n == 0 || seg->symbols.n == 2);
		n_old += seg->symbols.n == 0;
		n_new += seg->symbols.n == 2;
	}
	printf("\told %u, new %u\n", n_old, n_new);
	snprintf(command, sizeof(command), "rm -f '%s'/*.new", dir);
	CHECK_EQ(system(command), 0);
	finish();
}

static void delete_it(void *data, uint64_t done, uint64_t total)
{
	(void)done;
	(void)total;
	unlink(data);
}

TEST(a_segment_that_retention_deleted_does_not_come_back)
{
	struct weft__annotate_opts opts = {.symbols = {.no_debuginfod = true}, .progress = delete_it};
	struct weft__annotated done;
	struct weft_error err = {0};
	char path[512];

	REQUIRE(set_scene());
	write_scene("one.weft");
	snprintf(path, sizeof(path), "%s", file_of("one.weft"));
	opts.data = path;
	CHECK_EQ(annotate_with(&opts, path, NULL, &done, &err), -ENOENT);
	CHECK_EQ(files_in(dir), 0);
	finish();
}

static void write_text(const char *name, const char *text)
{
	FILE *out = fopen(file_of(name), "w");

	if (CHECK(out != NULL)) {
		fputs(text, out);
		fclose(out);
	}
}

/* Code of a JIT, in a module and in none; its map grows from one segment to the next. */
TEST(code_without_a_file_has_its_names_from_a_perf_map)
{
	struct weft__annotate_opts opts = {.symbols = {.jit_dir = dir, .no_debuginfod = true}};
	struct weft__annotator *annotator = NULL;
	struct weft__annotated done;

	REQUIRE(set_scene());
	scene.modules[0] = (struct weft_module){
		.id = 1, .kind = WEFT_MODULE_CODE, .path = "//anon", .start = 0x700000, .end = 0x800000};
	scene.frames[0].offset = 0x10;
	write_scene("one.weft");
	scene.file.sequence = 1;
	write_scene("two.weft");
	write_text("perf-4242.map", "123400 100 LazyCompile:\xff on_request\n");
	CHECK_EQ(weft__annotator_open(&annotator, &opts, NULL), 0);
	CHECK_EQ(weft__annotator_run(annotator, file_of("one.weft"), NULL, &done, NULL), 0);
	CHECK_EQ(done.named, 2);
	write_text("perf-4242.map", "123400 100 LazyCompile: on_request\n700000 20 tick\n");
	CHECK_EQ(weft__annotator_run(annotator, file_of("two.weft"), NULL, &done, NULL), 0);
	CHECK_EQ(done.named, 3);
	weft__annotator_close(annotator);
	CHECK_STR(function_of(open_again("one.weft"), &scene.frames[2]), "LazyCompile:? on_request");
	CHECK_STR(function_of(open_again("two.weft"), &scene.frames[0]), "tick");
	finish();
}

TEST(kernel_names_are_used_only_in_the_boot_that_was_recorded)
{
	struct weft__annotate_opts opts = {.symbols = {.no_debuginfod = true}};
	struct weft__annotator *annotator = NULL;
	struct weft__annotated done;

	REQUIRE(set_scene());
	scene.modules[0] =
		(struct weft_module){.id = 1, .kind = WEFT_MODULE_KERNEL, .path = "[kernel]", .end = UINT64_MAX};
	scene.frames[0].offset = UINT64_C(0xffffffff81000010);
	scene.file.boot_id = "00000000-1111-2222-3333-444444444444";
	write_scene("one.weft");
	CHECK_EQ(weft__annotator_open(&annotator, &opts, NULL), 0);
	CHECK_EQ(weft__annotator_run(annotator, file_of("one.weft"), NULL, &done, NULL), 0);
	CHECK_EQ(done.modules[0].named, 0);
	CHECK(strstr(done.modules[0].why, "another boot") != NULL);
	weft__annotator_close(annotator);
	/* Who saved the names of that boot may give them. */
	write_text("kallsyms", "ffffffff81000000 T _text\nffffffff81000000 T do_work\nffffffff81000100 T _etext\n");
	opts.symbols.kallsyms = file_of("kallsyms");
	CHECK_EQ(weft__annotator_open(&annotator, &opts, NULL), 0);
	CHECK_EQ(weft__annotator_run(annotator, file_of("one.weft"), NULL, &done, NULL), 0);
	CHECK_EQ(done.modules[0].named, 1);
	weft__annotator_close(annotator);
	CHECK_STR(function_of(open_again("one.weft"), &scene.frames[0]), "do_work");
	finish();
}

TEST(names_that_are_there_stay_unless_asked_for_again)
{
	struct weft__annotate_opts opts = {.symbols = {.jit_dir = dir, .no_debuginfod = true}};
	struct weft__annotated done;
	struct weft_error err;

	REQUIRE(set_scene());
	write_scene("one.weft");
	write_text("perf-4242.map", "123400 100 old\n");
	CHECK_EQ(annotate_with(&opts, file_of("one.weft"), NULL, &done, &err), 0);
	write_text("perf-4242.map", "123400 100 renewed\n");
	CHECK_EQ(annotate_with(&opts, file_of("one.weft"), NULL, &done, &err), 0);
	CHECK_STR(function_of(open_again("one.weft"), &scene.frames[2]), "old");
	opts.again = true;
	CHECK_EQ(annotate_with(&opts, file_of("one.weft"), NULL, &done, &err), 0);
	CHECK_EQ(done.added, 1);
	CHECK_EQ(done.named, 3);
	CHECK_STR(function_of(open_again("one.weft"), &scene.frames[2]), "renewed");
	CHECK_STR(function_of(open_again("one.weft"), &scene.frames[0]), "inner_function");
	finish();
}

static long left; /* allocations that succeed */

static void *resize(void *ptr, size_t bytes, void *data)
{
	(void)data;
	return left-- > 0 ? realloc(ptr, bytes) : NULL;
}

static void release(void *ptr, void *data)
{
	(void)data;
	free(ptr);
}

/* Memory that runs out at each allocation in turn: an error, and the old file. */
TEST(memory_that_runs_out_leaves_the_old_segment)
{
	struct weft_allocator allocator = {resize, release, NULL};
	struct weft__annotate_opts opts = {.symbols = {.debug_dirs = "/nonexistent", .no_debuginfod = true}};
	struct weft__annotated done = {0};
	struct weft_error err;
	long allowed;
	int r = -1;

	REQUIRE(set_scene());
	scene.file.n_modules = 1;
	write_scene("one.weft");
	weft_set_allocator(&allocator);
	for (allowed = 0; allowed < 100000 && r; allowed++) {
		left = allowed;
		r = annotate_with(&opts, file_of("one.weft"), NULL, &done, &err);
		CHECK(r == 0 || r == -ENOMEM);
		CHECK_EQ(files_in(dir), 1);
	}
	left = 1000000;
	weft_set_allocator(NULL);
	CHECK(allowed > 50 && allowed < 100000);
	CHECK_EQ(done.added, 1);
	CHECK_EQ(count_events(open_again("one.weft")), 6);
	finish();
}

/* What fuzzing found worth keeping, as segments: whatever is in them, nothing that reads is lost. */
TEST(symbolize_keeps_what_can_be_read_of_strange_segments)
{
	struct weft__annotate_opts opts = {.symbols = {.debug_dirs = "/nonexistent", .no_debuginfod = true}};
	const char *source = getenv("WEFT_SOURCE");
	struct weft__annotator *annotator = NULL;
	struct dirent *entry;
	char corpus[512], path[1024];
	int n = 0, n_good = 0;
	DIR *files;

	snprintf(corpus, sizeof(corpus), "%s/test/fuzz/corpus/segment", source ? source : "");
	files = opendir(corpus);
	if (!files)
		SKIP("there is no corpus in $WEFT_SOURCE");
	REQUIRE(set_scene());
	CHECK_EQ(weft__annotator_open(&annotator, &opts, NULL), 0);
	while ((entry = readdir(files))) {
		struct weft_segment *before = NULL, *after;
		struct weft__annotated done;

		if (entry->d_name[0] == '.')
			continue;
		n++;
		snprintf(path, sizeof(path), "%s/%s", corpus, entry->d_name);
		if (weft__annotator_run(annotator, path, file_of("out.weft"), &done, NULL) < 0)
			continue;
		n_good++;
		after = open_again("out.weft");
		REQUIRE(after && weft_segment_open(&before, path, NULL) == 0);
		if (!CHECK_EQ(count_events(after), count_events(before)) ||
		    !CHECK(!weft_segment_damage(after).places == !weft_segment_damage(before).places ||
			   strstr(weft_segment_damage(before).text, "the index does not parse"))) /* it is new */
			printf("\t%s: %s\n", entry->d_name, weft_segment_damage(before).text);
		CHECK_EQ(weft_segment_info(after)->sealed, 1);
		weft_segment_close(before);
	}
	closedir(files);
	weft__annotator_close(annotator);
	printf("\t%d of %d are segments\n", n_good, n);
	CHECK(n_good > 0);
	finish();
}
