/* SPDX-License-Identifier: Apache-2.0 */
/* The stack recorder and the pprof encoder over a made-up profile: bench_profile_inside OUT.pb.gz [SAMPLES]. Prints
 * numbers for bench/profile.py, in CPU time of the one thread that runs. The profile is that of a server: stacks of 8
 * to 40 frames that share their outer ones, threads, and spans. */
#include "bench.h"

#include <libdeflate.h>

#include "base/alloc.h"
#include "export/aggregate.h"

#define PLACES 8000u
#define STACKS 20000u
#define FRAMES_MAX 40u

struct stack {
	uint32_t n;
	uint32_t frames[FRAMES_MAX];
};

static struct stack stacks[STACKS];
static uint64_t state = 88172645463325252u;

static uint32_t random_below(uint32_t n)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)(state >> 33) % n;
}

static void must(int good)
{
	if (!good) {
		fputs("bench_profile_inside: failed\n", stderr);
		exit(1);
	}
}

/* A stack differs from one before it in its inner frames. */
static void make_stacks(void)
{
	uint32_t i, k, shared;

	for (i = 0; i < STACKS; i++) {
		struct stack *s = &stacks[i], *other = &stacks[i ? random_below(i) : 0];

		s->n = 8 + random_below(FRAMES_MAX - 8);
		shared = i ? random_below(other->n < s->n ? other->n : s->n) : 0;
		for (k = 0; k < s->n; k++)
			s->frames[k] = random_below(PLACES);
		for (k = 0; k < shared; k++)
			s->frames[s->n - 1 - k] = other->frames[other->n - 1 - k];
	}
}

static void make_places(struct weft__aggregate *agg)
{
	char name[64], file[64];
	uint32_t i, place;

	for (i = 0; i < PLACES; i++) {
		snprintf(name, sizeof(name), "server::module_%u::handle_request_%u", i % 50, i);
		snprintf(file, sizeof(file), "/src/server/module_%u.c", i % 50);
		must(weft__aggregate_mark(agg, name, file, i, &place) == 0 && place == i);
	}
}

static void labels_of(uint32_t i, struct weft__row_labels *labels)
{
	*labels = (struct weft__row_labels){.tid = 1000 + i % 16, .thread = 1, .worker = 2, .state = 3};
	if (i % 4 == 0) {
		labels->span = i * UINT64_C(0x9e3779b97f4a7c15);
		labels->root = labels->span + 1;
		labels->trace_lo = labels->span + 2;
		labels->endpoint = 4;
	}
}

/* Samples a second: each in one call, frames and labels as they come. */
static uint64_t record(struct weft__sums *sums, uint32_t n)
{
	int64_t values[WEFT__N_VALUES] = {1, 10000000};
	struct weft__row_labels labels;
	uint64_t begin_ns = bench_cpu_ns();
	uint32_t i;

	for (i = 0; i < n; i++) {
		const struct stack *s = &stacks[random_below(STACKS)];
		uint32_t stack, set;

		labels_of(i % 2000, &labels);
		must(weft__sums_stack(sums, s->frames, s->n, &stack) == 0 &&
		     weft__sums_labels(sums, &labels, sizeof(labels), &set) == 0 &&
		     weft__sums_add(sums, stack, set, values) == 0);
	}
	return bench_cpu_ns() - begin_ns;
}

/* What cannot be saved: to read frames and labels, and add the values. */
static uint64_t floor_ns(uint32_t n)
{
	struct weft__row_labels labels;
	uint64_t begin_ns = bench_cpu_ns(), sum = 0;
	uint32_t i, k;

	for (i = 0; i < n; i++) {
		const struct stack *s = &stacks[random_below(STACKS)];

		labels_of(i % 2000, &labels);
		for (k = 0; k < s->n; k++)
			sum += s->frames[k];
		sum += labels.span;
		BENCH_BARRIER();
	}
	must(sum != 0);
	return bench_cpu_ns() - begin_ns;
}

static void write_out(const char *path, const void *bytes, size_t n)
{
	FILE *f = fopen(path, "we");

	must(f != NULL && fwrite(bytes, 1, n, f) == n);
	must(fclose(f) == 0);
}

int main(int argc, char **argv)
{
	struct weft__export_opts opts = {.what = WEFT__EXPORT_CPU};
	struct weft__aggregate agg = {.opts = &opts};
	struct libdeflate_compressor *gzip = libdeflate_alloc_compressor(6);
	struct weft__buf out = {0};
	uint32_t n = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 400000, text;
	uint64_t add_ns, encode_ns, gzip_ns, best = UINT64_MAX, begin_ns;
	size_t bytes, packed, i;
	uint8_t *room;

	must(argc > 1 && gzip != NULL);
	weft__alloc_plain();
	make_stacks();
	must(weft__keys_text(&agg.texts, "", &text) == 0 && weft__keys_text(&agg.texts, "worker-0", &text) == 0 &&
	     weft__keys_text(&agg.texts, "demo/0", &text) == 0 && weft__keys_text(&agg.texts, "on cpu", &text) == 0 &&
	     weft__keys_text(&agg.texts, "POST /cart", &text) == 0);
	make_places(&agg);
	weft__sums_init(&agg.sums, WEFT__N_VALUES, (uint64_t)1 << 30);
	add_ns = record(&agg.sums, n);
	agg.n_recordings = 1;
	for (i = 0; i < 3; i++) {
		weft__buf_clear(&out);
		begin_ns = bench_cpu_ns();
		weft__pprof_encode(&agg, &out);
		encode_ns = bench_cpu_ns() - begin_ns;
		best = encode_ns < best ? encode_ns : best;
	}
	must(!out.oom);
	bytes = libdeflate_gzip_compress_bound(gzip, out.n);
	room = malloc(bytes);
	must(room != NULL);
	begin_ns = bench_cpu_ns();
	packed = libdeflate_gzip_compress(gzip, out.bytes, out.n, room, bytes);
	gzip_ns = bench_cpu_ns() - begin_ns;
	must(packed > 0);
	write_out(argv[1], room, packed);
	printf("%u %zu %llu %llu %llu %llu %zu %zu\n", n, agg.sums.n_rows, (unsigned long long)add_ns,
	       (unsigned long long)floor_ns(n), (unsigned long long)best, (unsigned long long)gzip_ns, out.n, packed);
	return 0;
}
