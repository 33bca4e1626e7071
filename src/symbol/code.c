/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol/code.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

int weft__jitcode_add(struct weft__jitcode *code, const struct weft__jitcode_piece *piece)
{
	struct weft__jitcode_piece *pieces;

	if (code->n >= WEFT__JITCODE_MAX)
		return -E2BIG;
	pieces = weft__grow(code->pieces, &code->cap, code->n, sizeof(*pieces));
	if (!pieces)
		return -ENOMEM;
	code->pieces = pieces;
	pieces[code->n] = *piece;
	pieces[code->n].order = (uint32_t)code->n;
	code->n++;
	return 0;
}

int weft__jitcode_add_line(struct weft__jitcode *code, uint64_t address, const char *file, uint32_t line)
{
	struct weft__jitcode_line *lines;

	if (code->n_lines >= 4 * WEFT__JITCODE_MAX)
		return -E2BIG;
	lines = weft__grow(code->lines, &code->cap_lines, code->n_lines, sizeof(*lines));
	if (!lines)
		return -ENOMEM;
	code->lines = lines;
	lines[code->n_lines++] = (struct weft__jitcode_line){address, file, line};
	return 0;
}

static int by_start(const void *a, const void *b)
{
	const struct weft__jitcode_piece *x = a, *y = b;

	if (x->lo != y->lo)
		return x->lo < y->lo ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

static int by_address(const void *a, const void *b)
{
	const struct weft__jitcode_line *x = a, *y = b;

	return x->address < y->address ? -1 : x->address > y->address;
}

void weft__jitcode_seal(struct weft__jitcode *code)
{
	uint64_t most = 0;
	size_t i;

	for (i = 0; i < code->n; i++) {
		const struct weft__jitcode_piece *piece = &code->pieces[i];

		if (piece->n_lines && !piece->line_shift) /* those that were moved share the lines of the first place */
			qsort(code->lines + piece->lines, piece->n_lines, sizeof(*code->lines), by_address);
	}
	if (code->n)
		qsort(code->pieces, code->n, sizeof(*code->pieces), by_start);
	for (i = 0; i < code->n; i++) {
		if (code->pieces[i].hi > most)
			most = code->pieces[i].hi;
		code->pieces[i].most = most;
	}
}

const struct weft__jitcode_piece *weft__jitcode_get(const struct weft__jitcode *code, uint64_t address,
						    uint64_t time_ns)
{
	const struct weft__jitcode_piece *best = NULL;
	size_t low = 0, high = code->n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (code->pieces[mid].lo <= address)
			low = mid + 1;
		else
			high = mid;
	}
	while (low-- && code->pieces[low].most > address) {
		const struct weft__jitcode_piece *piece = &code->pieces[low];

		if (address >= piece->hi || (best && piece->order < best->order))
			continue;
		if (code->timed && time_ns && (time_ns < piece->from || time_ns >= piece->to))
			continue;
		best = piece;
	}
	return best;
}

const struct weft__jitcode_line *weft__jitcode_line(const struct weft__jitcode *code,
						    const struct weft__jitcode_piece *piece, uint64_t address)
{
	const struct weft__jitcode_line *best = NULL;
	size_t low = piece->lines, high = piece->lines + piece->n_lines;

	address += piece->line_shift;
	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (code->lines[mid].address <= address) {
			best = &code->lines[mid];
			low = mid + 1;
		} else {
			high = mid;
		}
	}
	return best;
}

void weft__jitcode_fini(struct weft__jitcode *code)
{
	weft__free(code->pieces);
	weft__free(code->lines);
	memset(code, 0, sizeof(*code));
}
