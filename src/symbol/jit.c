/* SPDX-License-Identifier: Apache-2.0 */
/* The source for code without a file: what the process itself wrote down, a jitdump or a perf map. A jitdump knows
 * times and lines, so it is asked first. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "symbol/file.h"
#include "symbol/jitdump.h"
#include "symbol/perf_map.h"
#include "symbol/source.h"

#define FILE_MAX ((uint64_t)1 << 30)

/* By what a file is known to be as it was when it was read. */
struct stamp {
	uint64_t bytes;
	uint64_t inode;
	int64_t mtime_ns;
};

struct process {
	uint32_t pid;
	uint32_t uid;    /* whose files are believed */
	bool looked;     /* for the files in jit_dir */
	bool foreign;    /* there was a file of somebody else, or a link */
	bool given_dump; /* by weft__jit_add_dump */
	struct stamp map_stamp;
	struct stamp dump_stamp;
	struct weft__jitcode map;
	struct weft__jitcode dump;
	struct weft__buf map_text;
	struct weft__buf dump_bytes;
};

struct jit {
	struct weft__source source;
	struct process *processes;
	size_t n;
	size_t cap;
};

static struct process *process_of(struct jit *jit, uint32_t pid, uint32_t uid)
{
	struct process *processes;
	size_t i;

	for (i = 0; i < jit->n; i++)
		if (jit->processes[i].pid == pid) {
			jit->processes[i].looked &= jit->processes[i].uid == uid;
			jit->processes[i].uid = uid;
			return &jit->processes[i];
		}
	processes = weft__grow(jit->processes, &jit->cap, jit->n, sizeof(*processes));
	if (!processes)
		return NULL;
	jit->processes = processes;
	processes[jit->n] = (struct process){.pid = pid, .uid = uid};
	return &processes[jit->n++];
}

static int read_dump(struct process *process, const char *path)
{
	int failed;

	weft__jitcode_fini(&process->dump);
	weft__buf_free(&process->dump_bytes);
	failed = process->given_dump ? weft__file_read(&process->dump_bytes, path, FILE_MAX)
				     : weft__file_read_of(&process->dump_bytes, path, FILE_MAX, process->uid);
	process->foreign |= failed == -EPERM;
	if (!failed)
		failed = weft__jitdump_parse(&process->dump, process->dump_bytes.bytes, process->dump_bytes.n - 1);
	weft__jitcode_seal(&process->dump);
	return failed;
}

static struct stamp stamp_of(const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return (struct stamp){0};
	return (struct stamp){(uint64_t)st.st_size, st.st_ino,
			      st.st_mtim.tv_sec * INT64_C(1000000000) + st.st_mtim.tv_nsec};
}

static const char *path_of(const struct jit *jit, const struct process *process, const char *before, const char *end,
			   char *path)
{
	snprintf(path, PATH_MAX, "%s/%s%u%s", jit->source.env->opts.jit_dir, before, process->pid, end);
	return path;
}

static int look(struct jit *jit, struct process *process)
{
	char path[PATH_MAX];
	int failed = 0;

	process->looked = true;
	process->foreign = false;
	if (!process->given_dump) {
		process->dump_stamp = stamp_of(path_of(jit, process, "jit-", ".dump", path));
		failed = read_dump(process, path);
	}
	process->map_stamp = stamp_of(path_of(jit, process, "perf-", ".map", path));
	weft__jitcode_fini(&process->map);
	weft__buf_free(&process->map_text);
	if (failed != -ENOMEM)
		failed = weft__file_read_of(&process->map_text, path, FILE_MAX, process->uid);
	process->foreign |= failed == -EPERM;
	if (!failed)
		failed = weft__perf_map_parse(&process->map, (const char *)process->map_text.bytes,
					      process->map_text.n - 1);
	weft__jitcode_seal(&process->map);
	return failed == -ENOMEM ? failed : 0;
}

static bool without_file(const char *path)
{
	static const char *const names[] = {"//anon", "[anon", "[heap]", "[stack", "/memfd:", "/dev/zero", "/SYSV"};
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strncmp(path, names[i], strlen(names[i])))
			return true;
	return !path[0];
}

static int answer(struct jit *jit, const struct weft__jitcode *code, uint64_t ip, uint64_t time_ns,
		  struct weft__frame_list *out)
{
	const struct weft__jitcode_piece *piece = weft__jitcode_get(code, ip, time_ns);
	struct weft__texts *names = &jit->source.env->texts;
	const struct weft__jitcode_line *line;
	const char *name, *file = NULL;

	if (!piece)
		return 0;
	line = weft__jitcode_line(code, piece, ip);
	name = weft__texts_add_n(names, piece->name, piece->name_n);
	if (line && line->file)
		file = weft__texts_add(names, line->file);
	if (!name || (line && line->file && !file))
		return -ENOMEM;
	return weft__frame_add(jit->source.env, out, name, file, line ? line->line : 0, ip - piece->lo);
}

static int jit_resolve(struct weft__source *source, struct weft__symbol_entry *module, uint64_t ip, uint64_t time_ns,
		       struct weft__frame_list *out)
{
	struct jit *jit = (struct jit *)source;
	struct process *process;
	int n;

	if (!module->at.pid || !without_file(module->at.path))
		return 0;
	process = process_of(jit, module->at.pid, module->at.uid);
	if (!process || (!process->looked && look(jit, process) < 0))
		return -ENOMEM;
	n = answer(jit, &process->dump, ip, time_ns, out);
	if (!n)
		n = answer(jit, &process->map, ip, 0, out);
	if (!n && !process->dump.n && !process->map.n && process->foreign)
		weft__symbol_why(source->env, module,
				 "perf-%u.map or jit-%u.dump in %s is not a regular file of user %u, of root or of "
				 "yours, and is "
				 "not believed",
				 process->pid, process->pid, source->env->opts.jit_dir, process->uid);
	else if (!n && !process->dump.n && !process->map.n)
		weft__symbol_why(source->env, module,
				 "no perf-%u.map and no jit-%u.dump in %s (weft symbolize --jit-dir looks elsewhere)",
				 process->pid, process->pid, source->env->opts.jit_dir);
	return n;
}

int weft__jit_add_dump(struct weft__source *source, uint32_t pid, const char *path)
{
	struct process *process = process_of((struct jit *)source, pid, 0);

	if (!process)
		return -ENOMEM;
	process->given_dump = true;
	return read_dump(process, path);
}

void weft__jit_refresh(struct weft__source *source)
{
	struct jit *jit = (struct jit *)source;
	size_t i;

	for (i = 0; i < jit->n; i++) {
		struct process *process = &jit->processes[i];
		char path[PATH_MAX];
		struct stamp map = stamp_of(path_of(jit, process, "perf-", ".map", path));
		struct stamp dump = stamp_of(path_of(jit, process, "jit-", ".dump", path));

		if (memcmp(&map, &process->map_stamp, sizeof(map)) != 0 ||
		    (!process->given_dump && memcmp(&dump, &process->dump_stamp, sizeof(dump)) != 0))
			process->looked = false;
	}
}

static int jit_open(struct weft__source **ret, struct weft__symbol_env *env)
{
	struct jit *jit = weft__calloc(1, sizeof(*jit));

	(void)env;
	if (!jit)
		return -ENOMEM;
	*ret = &jit->source;
	return 0;
}

static void jit_close(struct weft__source *source)
{
	struct jit *jit = (struct jit *)source;
	size_t i;

	for (i = 0; i < jit->n; i++) {
		weft__jitcode_fini(&jit->processes[i].map);
		weft__jitcode_fini(&jit->processes[i].dump);
		weft__buf_free(&jit->processes[i].map_text);
		weft__buf_free(&jit->processes[i].dump_bytes);
	}
	weft__free(jit->processes);
	weft__free(jit);
}

const struct weft__source_ops weft__source_jit = {"jit", jit_open, jit_resolve, jit_close};
