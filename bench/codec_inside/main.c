/* SPDX-License-Identifier: Apache-2.0 */
/* How fast the events of a real trace are encoded and decoded on one core: bench_codec_inside SEGMENT [--quick].
 *
 * Encoding is the collector's flush, from raw slots in staging to blocks in a file in memory. Decoding is what a reader
 * sees, from the segment's bytes to one struct weft_event_view after the other. Beside them: copying the same events as
 * raw 16-byte slots, and zstd -1 over these. Rates are by CPU time. */
#include <fcntl.h>
#include <sys/stat.h>
#include <zstd.h>

#include "bench.h"
#include "codec_inside/stage.h"

struct bytes {
	uint8_t *at;
	size_t n;
};

static struct bytes read_all(const char *path)
{
	struct bytes b = {0};
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || fstat(fd, &st) < 0 || !(b.at = malloc((size_t)st.st_size)) ||
	    read(fd, b.at, (size_t)st.st_size) != st.st_size) {
		fprintf(stderr, "bench: cannot read %s\n", path);
		exit(1);
	}
	b.n = (size_t)st.st_size;
	close(fd);
	return b;
}

static uint64_t decode(struct bytes segment, enum weft_order order, uint64_t *ret_events)
{
	uint64_t begin = bench_cpu_ns();
	struct weft_event_view ev;
	struct weft_segment *seg;
	struct weft_cursor *cursor;
	struct weft_error err;
	uint64_t n = 0, sum = 0;

	bench_check(weft_segment_open_memory(&seg, segment.at, segment.n, &err), &err);
	bench_check(weft_cursor_open(&cursor, seg, order, 0, UINT64_MAX, &err), &err);
	while (weft_cursor_next(cursor, &ev) == 1) {
		n++;
		sum += ev.time_ns + ev.kind + ev.fields[0];
	}
	weft_cursor_close(cursor);
	weft_segment_close(seg);
	__asm__ volatile("" : : "r"(sum));
	*ret_events = n;
	return bench_cpu_ns() - begin;
}

/* What the same events cost as they are: copied, and through zstd. */
struct raw {
	struct bytes slots, copy, squeezed, back;
	struct bench_samples copy_rate, squeeze_rate, expand_rate;
	double squeezed_bytes;
};

static struct raw raw_new(const struct stage *stage)
{
	size_t n = stage->n_slots * sizeof(struct weft_slot), at = 0;
	struct raw raw = {.slots = {malloc(n), n}, .copy = {malloc(n), n}, .back = {malloc(n), n}};

	raw.squeezed.n = ZSTD_compressBound(n);
	raw.squeezed.at = malloc(raw.squeezed.n);
	if (!raw.slots.at || !raw.copy.at || !raw.back.at || !raw.squeezed.at)
		abort();
	for (size_t i = 0; i < stage->n_images; i++) {
		const struct image *image = &stage->images[i];

		for (uint64_t run_at = 0; run_at < image->used;) {
			struct staged_run run;
			size_t bytes;

			memcpy(&run, image->bytes + run_at, sizeof(run));
			bytes = run.n * sizeof(struct weft_slot);
			memcpy(raw.slots.at + at, image->bytes + run_at + sizeof(run), bytes);
			at += bytes;
			run_at += sizeof(run) + bytes;
		}
	}
	return raw;
}

static void raw_run(struct raw *raw, uint64_t n_events)
{
	uint64_t t0 = bench_cpu_ns(), t1, t2, t3;
	size_t squeezed;

	memcpy(raw->copy.at, raw->slots.at, raw->slots.n);
	BENCH_BARRIER();
	t1 = bench_cpu_ns();
	squeezed = ZSTD_compress(raw->squeezed.at, raw->squeezed.n, raw->slots.at, raw->slots.n, 1);
	t2 = bench_cpu_ns();
	if (ZSTD_isError(squeezed) ||
	    ZSTD_decompress(raw->back.at, raw->back.n, raw->squeezed.at, squeezed) != raw->slots.n)
		abort();
	t3 = bench_cpu_ns();
	raw->squeezed_bytes = (double)squeezed / (double)n_events;
	bench_add(&raw->copy_rate, (double)n_events / (double)(t1 - t0) * 1e3);
	bench_add(&raw->squeeze_rate, (double)n_events / (double)(t2 - t1) * 1e3);
	bench_add(&raw->expand_rate, (double)n_events / (double)(t3 - t2) * 1e3);
}

static void print_rate(const char *name, struct bench_samples *rate, struct bench_samples *base, const char *note)
{
	bench_print(name, bench_median(rate), "M events/s", "baseline", bench_median(base),
		    bench_median(rate) / bench_median(base), "%s; p10 %.1f p90 %.1f max %.1f", note,
		    bench_quantile(rate, 0.1), bench_quantile(rate, 0.9), bench_quantile(rate, 1));
}

int main(int argc, char **argv)
{
	struct bench_samples enc = {0}, dec = {0}, merged = {0};
	int passes = bench_quick(argc, argv) ? 5 : 15;
	struct bytes segment;
	struct stage stage;
	struct collect *collect;
	struct raw raw;
	uint64_t bytes = 0, n;
	char note[300];

	if (argc < 2) {
		fprintf(stderr, "usage: bench_codec_inside SEGMENT [--quick]\n");
		return 2;
	}
	segment = read_all(argv[1]);
	stage = stage_read(segment.at, segment.n);
	collect = collect_new(&stage);
	raw = raw_new(&stage);
	bench_pin(BENCH_CPU_LAST);
	for (int i = -1; i < passes; i++) { /* the first warms up */
		uint64_t ns = collect_run(collect, &stage, &bytes);

		bench_add(&enc, (double)stage.n_events / (double)ns * 1e3);
		ns = decode(segment, WEFT_ORDER_STORED, &n);
		bench_add(&dec, (double)n / (double)ns * 1e3);
		ns = decode(segment, WEFT_ORDER_TIME, &n);
		bench_add(&merged, (double)n / (double)ns * 1e3);
		raw_run(&raw, stage.n_events);
		if (i < 0)
			enc.n = dec.n = merged.n = raw.copy_rate.n = raw.squeeze_rate.n = raw.expand_rate.n = 0;
	}
	snprintf(note, sizeof(note),
		 "%llu events of the demo, raw slots to blocks in %.2f B each; baseline: zstd -1 of the raw slots "
		 "(%.2f B "
		 "each); memcpy of them: %.0f M/s",
		 (unsigned long long)stage.n_events, (double)bytes / (double)stage.n_events, raw.squeezed_bytes,
		 bench_median(&raw.copy_rate));
	print_rate("encode_rate", &enc, &raw.squeeze_rate, note);
	snprintf(note, sizeof(note),
		 "cursor in stored order; baseline: memcpy of the raw slots; zstd -d of them: %.0f M/s",
		 bench_median(&raw.expand_rate));
	print_rate("decode_rate", &dec, &raw.copy_rate, note);
	print_rate("decode_rate_merged", &merged, &raw.copy_rate, "cursor in time order; the same baseline");
	return 0;
}
