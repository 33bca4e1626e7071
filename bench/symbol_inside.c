/* SPDX-License-Identifier: Apache-2.0 */
/* How fast addresses become names, for bench/symbol.py: bench_symbol_inside JOB [ROUNDS]. A job has lines
 *
 *     m START END OFFSET PATH     a module, numbers in hexadecimal
 *     a MODULE IP                 an address of the module with that number, counted from 0
 *
 * Each round begins with nothing: files are opened, tables built. Prints the frames of a round and the ns of the
 * best. */
#include <inttypes.h>

#include "bench.h"
#include "symbol/symbol.h"

struct job {
	struct weft__symbol_module modules[4096];
	uint32_t n_modules;
	struct weft__symbol_place *places;
	size_t n;
	size_t cap;
};

static void add_place(struct job *job, uint32_t module, uint64_t ip)
{
	if (job->n == job->cap) {
		job->cap = job->cap ? job->cap * 2 : 1024;
		job->places = realloc(job->places, job->cap * sizeof(*job->places));
		if (!job->places)
			abort();
	}
	job->places[job->n++] = (struct weft__symbol_place){.module = module, .ip = ip};
}

static void read_job(struct job *job, const char *path)
{
	char line[8192], file[4096];
	uint64_t a, b, c;
	uint32_t module;
	FILE *in = fopen(path, "r");

	if (!in) {
		perror(path);
		exit(1);
	}
	while (fgets(line, sizeof(line), in)) {
		if (sscanf(line, "a %" SCNu32 " %" SCNx64, &module, &a) == 2)
			add_place(job, module, a);
		else if (sscanf(line, "m %" SCNx64 " %" SCNx64 " %" SCNx64 " %4095[^\n]", &a, &b, &c, file) == 4 &&
			 job->n_modules < 4096)
			job->modules[job->n_modules++] =
				(struct weft__symbol_module){.path = strdup(file), .start = a, .end = b, .offset = c};
	}
	fclose(in);
}

static void count(size_t index, const struct weft__symbol_frames *frames, void *data)
{
	(void)index;
	*(uint64_t *)data += frames->n;
}

int main(int argc, char **argv)
{
	static struct job job;
	struct weft__symbolizer_opts opts = {.no_debuginfod = true};
	int rounds = argc > 2 ? atoi(argv[2]) : 5;
	uint64_t frames = 0, best = UINT64_MAX;

	if (argc < 2)
		return 2;
	read_job(&job, argv[1]);
	for (int round = 0; round < rounds; round++) {
		struct weft__symbolizer *sym;
		struct weft_error err;
		uint64_t begin = bench_now_ns(), took;

		frames = 0;
		bench_check(weft__symbolizer_open(&sym, &opts, &err), &err);
		for (uint32_t i = 0, id; i < job.n_modules; i++)
			if (weft__symbolizer_add(sym, &job.modules[i], &id) < 0)
				abort();
		if (weft__symbolizer_resolve_all(sym, job.places, job.n, count, &frames) < 0)
			abort();
		weft__symbolizer_close(sym);
		took = bench_now_ns() - begin;
		best = took < best ? took : best;
	}
	printf("%" PRIu64 " %" PRIu64 "\n", frames, best);
	return 0;
}
