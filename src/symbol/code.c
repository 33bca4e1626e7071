/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol/code.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

int weft__code_add(struct weft__code *code, const struct weft__code_piece *piece)
{
	struct weft__code_piece *pieces;

	if (code->n >= WEFT__CODE_MAX)
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

int weft__code_add_line(struct weft__code *code, uint64_t address, const char *file, uint32_t line)
{
	struct weft__code_line *lines;

	if (code->n_lines >= 4 * WEFT__CODE_MAX)
		return -E2BIG;
	lines = weft__grow(code->lines, &code->cap_lines, code->n_lines, sizeof(*lines));
	if (!lines)
		return -ENOMEM;
	code->lines = lines;
	lines[code->n_lines++] = (struct weft__code_line){address, file, line};
	return 0;
}

static int by_start(const void *a, const void *b)
{
	const struct weft__code_piece *x = a, *y = b;

	if (x->lo != y->lo)
		return x->lo < y->lo ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

static int by_address(const void *a, const void *b)
{
	const struct weft__code_line *x = a, *y = b;

	return x->address < y->address ? -1 : x->address > y->address;
}

void weft__code_seal(struct weft__code *code)
{
	uint64_t most = 0;
	size_t i;

	for (i = 0; i < code->n; i++) {
		const struct weft__code_piece *piece = &code->pieces[i];

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

const struct weft__code_piece *weft__code_get(const struct weft__code *code, uint64_t address, uint64_t time_ns)
{
	const struct weft__code_piece *best = NULL;
	size_t low = 0, high = code->n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (code->pieces[mid].lo <= address)
			low = mid + 1;
		else
			high = mid;
	}
	while (low-- && code->pieces[low].most > address) {
		const struct weft__code_piece *piece = &code->pieces[low];

		if (address >= piece->hi || (best && piece->order < best->order))
			continue;
		if (code->timed && time_ns && (time_ns < piece->from || time_ns >= piece->to))
			continue;
		best = piece;
	}
	return best;
}

const struct weft__code_line *weft__code_line(const struct weft__code *code, const struct weft__code_piece *piece,
					      uint64_t address)
{
	const struct weft__code_line *best = NULL;
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

void weft__code_fini(struct weft__code *code)
{
	weft__free(code->pieces);
	weft__free(code->lines);
	memset(code, 0, sizeof(*code));
}
