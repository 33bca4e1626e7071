/* SPDX-License-Identifier: Apache-2.0 */
/* The format is described in the kernel's tools/perf/Documentation/jitdump-specification.txt. A header of 40 bytes,
 * then records:
 *
 *     all         u32 id, u32 bytes with this head, u64 time
 *     0 load      u32 pid, u32 tid, u64 vma, u64 address, u64 code bytes, u64 index, name, 0, code
 *     1 move      u32 pid, u32 tid, u64 vma, u64 old address, u64 new address, u64 code bytes, u64 index
 *     2 lines     before its load: u64 address of the code, u64 count, then count times u64 address, u32 line,
 *                 u32 discriminator, file, 0
 *     3 close
 *
 * Records of other kinds are passed over. The file name FF 00 means the one before. */
#include "symbol/jitdump.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/map.h"

#define MAGIC 0x4A695444
#define HEADER_BYTES 40
#define FLAG_ARCH_TIME 1 /* times are a CPU's counter, which nobody can convert any more */

enum { LOAD = 0, MOVE = 1, LINES = 2, CLOSE = 3 };

static uint32_t next_u32(struct weft__in *in)
{
	const uint8_t *p = in_bytes(in, 4);

	return p ? get_u32(p) : 0;
}

static uint64_t next_u64(struct weft__in *in)
{
	const uint8_t *p = in_bytes(in, 8);

	return p ? get_u64(p) : 0;
}

static const char *next_text(struct weft__in *in, size_t *ret_n)
{
	const uint8_t *end = memchr(in->p, 0, in_left(in));
	const char *text = (const char *)in->p;

	if (!end) {
		in_fail(in);
		return NULL;
	}
	*ret_n = (size_t)(end - in->p);
	in->p = end + 1;
	return text;
}

/* The lines that wait for their load. */
struct pending {
	uint64_t address;
	size_t first;
	size_t n;
};

struct parse {
	struct weft__jitcode *code;
	struct pending pending;
	struct weft__map live; /* the newest piece of each start address, so that moves are not a search */
};

/* Adds a piece; one that began at the same address ends here. */
static int add(struct parse *parse, const struct weft__jitcode_piece *piece)
{
	uint32_t old = weft__map_get(&parse->live, piece->lo);
	int failed = weft__jitcode_add(parse->code, piece);

	if (failed)
		return failed;
	if (old != WEFT__MAP_NONE && parse->code->pieces[old].to > piece->from)
		parse->code->pieces[old].to = piece->from;
	return weft__map_put(&parse->live, piece->lo, (uint32_t)parse->code->n - 1);
}

static int load(struct parse *parse, struct weft__in *in, uint64_t time)
{
	struct weft__jitcode_piece piece = {.from = time, .to = UINT64_MAX};
	uint64_t bytes;
	size_t name_n = 0;

	in_bytes(in, 4 + 4 + 8);
	piece.lo = next_u64(in);
	bytes = next_u64(in);
	piece.index = next_u64(in);
	piece.name = next_text(in, &name_n);
	if (in->bad || !bytes || piece.lo + bytes < piece.lo)
		return 0;
	piece.hi = piece.lo + bytes;
	piece.name_n = (uint32_t)(name_n > 65535 ? 65535 : name_n);
	if (parse->pending.n && parse->pending.address == piece.lo) {
		piece.lines = parse->pending.first;
		piece.n_lines = (uint32_t)parse->pending.n;
	}
	parse->pending.n = 0;
	return add(parse, &piece);
}

static int move(struct parse *parse, struct weft__in *in, uint64_t time)
{
	struct weft__jitcode_piece piece;
	uint64_t from, to, bytes, index;
	uint32_t old;

	in_bytes(in, 4 + 4 + 8);
	from = next_u64(in);
	to = next_u64(in);
	bytes = next_u64(in);
	index = next_u64(in);
	if (in->bad || !bytes || to + bytes < to || from == to)
		return 0;
	old = weft__map_get(&parse->live, from);
	if (old == WEFT__MAP_NONE || parse->code->pieces[old].index != index)
		return 0;
	piece = parse->code->pieces[old];
	parse->code->pieces[old].to = time;
	piece.line_shift += piece.lo - to;
	piece.lo = to;
	piece.hi = to + bytes;
	piece.from = time;
	piece.to = UINT64_MAX;
	return add(parse, &piece);
}

static int lines(struct parse *parse, struct weft__in *in)
{
	struct pending *pending = &parse->pending;
	const char *before = NULL;
	uint64_t count;

	pending->address = next_u64(in);
	pending->first = parse->code->n_lines;
	pending->n = 0;
	for (count = next_u64(in); count && !in->bad; count--) {
		uint64_t address = next_u64(in);
		uint32_t line = next_u32(in);
		const char *file;
		size_t n;
		int failed;

		next_u32(in);
		file = next_text(in, &n);
		if (in->bad)
			break;
		if (n == 1 && (uint8_t)file[0] == 0xff)
			file = before;
		before = file;
		failed = weft__jitcode_add_line(parse->code, address, file, line);
		if (failed == -E2BIG)
			break;
		if (failed)
			return failed;
	}
	if (parse->code->n_lines - pending->first <= UINT32_MAX)
		pending->n = parse->code->n_lines - pending->first;
	return 0;
}

static int record(struct parse *parse, uint32_t id, uint64_t time, struct weft__in *in)
{
	switch (id) {
	case LOAD:
		return load(parse, in, time);
	case MOVE:
		return move(parse, in, time);
	case LINES:
		return lines(parse, in);
	default:
		return 0;
	}
}

int weft__jitdump_parse(struct weft__jitcode *code, const void *bytes, size_t n)
{
	struct weft__in in = weft__in(bytes, n);
	struct parse parse = {.code = code};
	const uint8_t *head = in_bytes(&in, HEADER_BYTES);
	int failed = 0;

	if (!head || get_u32(head) != MAGIC || get_u32(head + 4) != 1 || get_u32(head + 8) < HEADER_BYTES)
		return -EINVAL;
	in_bytes(&in, get_u32(head + 8) - HEADER_BYTES);
	code->timed = !(get_u64(head + 32) & FLAG_ARCH_TIME);
	while (!failed && in_left(&in) >= 16) {
		uint32_t id = get_u32(in.p), size = get_u32(in.p + 4);
		uint64_t time = get_u64(in.p + 8);
		struct weft__in body;

		if (size < 16 || size > in_left(&in) || id == CLOSE)
			break;
		body = weft__in(in.p + 16, size - 16);
		in.p += size;
		failed = record(&parse, id, time, &body);
	}
	weft__map_fini(&parse.live);
	return failed == -E2BIG ? 0 : failed;
}
