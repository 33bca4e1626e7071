/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol/lines.h"

#include <dwarf.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"

#define FILES_MAX ((size_t)1 << 20)
#define FORMATS_MAX 16
#define END UINT32_MAX

/* What the program of the table needs to know. */
struct head {
	const struct weft__lines_sections *sections;
	struct weft__in in; /* the program, once the head is read */
	uint32_t offset_bytes;
	uint32_t address_bytes;
	uint32_t version;
	uint32_t min_bytes;
	int32_t line_base;
	uint32_t line_range;
	uint32_t opcode_base;
	uint8_t lengths[256];
};

static uint64_t in_fixed(struct weft__in *in, uint32_t n)
{
	const uint8_t *p = in_bytes(in, n);
	uint64_t v = 0;

	if (p && n <= 8)
		memcpy(&v, p, n);
	return v;
}

static const char *in_text(struct weft__in *in)
{
	const uint8_t *text = in->p, *end = memchr(in->p, 0, in_left(in));

	if (!end) {
		in_fail(in);
		return "";
	}
	in->p = end + 1;
	return (const char *)text;
}

/* The text at an offset of a section, when it ends in it. */
static const char *text_at(const uint8_t *bytes, size_t n, uint64_t at)
{
	return at < n && memchr(bytes + at, 0, n - at) ? (const char *)bytes + at : NULL;
}

static int add_dir(struct weft__lines *lines, const char *name)
{
	const char **dirs;

	if (lines->n_dirs >= FILES_MAX)
		return -EINVAL;
	dirs = weft__grow(lines->dirs, &lines->cap_dirs, lines->n_dirs, sizeof(char *));
	if (!dirs)
		return -ENOMEM;
	lines->dirs = dirs;
	dirs[lines->n_dirs++] = name;
	return 0;
}

static int add_file(struct weft__lines *lines, const char *name, uint64_t dir)
{
	struct weft__line_file *files;

	if (lines->n_files >= FILES_MAX)
		return -EINVAL;
	files = weft__grow(lines->files, &lines->cap_files, lines->n_files, sizeof(*files));
	if (!files)
		return -ENOMEM;
	lines->files = files;
	files[lines->n_files++] = (struct weft__line_file){name, dir < END ? (uint32_t)dir : END, NULL};
	return 0;
}

/* Up to version 4: names in a row, and number 0 is where it was compiled. */
static int read_old_names(struct weft__lines *lines, struct weft__in *in)
{
	int failed = add_dir(lines, lines->comp_dir);

	if (!failed)
		failed = add_file(lines, NULL, 0);
	while (!failed && !in->bad) {
		const char *name = in_text(in);

		if (!name[0])
			break;
		failed = add_dir(lines, name);
	}
	while (!failed && !in->bad) {
		const char *name = in_text(in);
		uint64_t dir;

		if (!name[0])
			break;
		dir = in_varint(in);
		in_varint(in); /* time */
		in_varint(in); /* bytes */
		failed = add_file(lines, name, dir);
	}
	return failed ? failed : in->bad ? -EINVAL : 0;
}

/* One value of an entry. False for forms that are not used here. */
static bool entry_value(const struct head *head, struct weft__in *in, uint64_t form, const char **text,
			uint64_t *number)
{
	const struct weft__lines_sections *s = head->sections;

	switch (form) {
	case DW_FORM_string:
		*text = in_text(in);
		return true;
	case DW_FORM_line_strp:
		*text = text_at(s->line_str, s->line_str_n, in_fixed(in, head->offset_bytes));
		return true;
	case DW_FORM_strp:
		*text = text_at(s->str, s->str_n, in_fixed(in, head->offset_bytes));
		return true;
	case DW_FORM_udata:
		*number = in_varint(in);
		return true;
	case DW_FORM_data1:
		*number = in_fixed(in, 1);
		return true;
	case DW_FORM_data2:
		*number = in_fixed(in, 2);
		return true;
	case DW_FORM_data4:
		*number = in_fixed(in, 4);
		return true;
	case DW_FORM_data8:
		*number = in_fixed(in, 8);
		return true;
	case DW_FORM_data16: /* a checksum */
		in_bytes(in, 16);
		return true;
	case DW_FORM_block:
		in_bytes(in, in_varint(in));
		return true;
	}
	return false;
}

/* Version 5: a list of entries that says itself what it has. */
static int read_list(struct weft__lines *lines, const struct head *head, struct weft__in *in, bool are_files)
{
	uint64_t formats[FORMATS_MAX][2], n, i;
	uint32_t n_formats = in_u8(in), j;

	if (n_formats > FORMATS_MAX)
		return -EINVAL;
	for (j = 0; j < n_formats; j++) {
		formats[j][0] = in_varint(in);
		formats[j][1] = in_varint(in);
	}
	n = in_varint(in);
	if (n && !n_formats) /* entries of no bytes could be any number */
		return -EINVAL;
	for (i = 0; i < n && !in->bad; i++) {
		const char *name = NULL;
		uint64_t dir = 0;
		int failed;

		for (j = 0; j < n_formats; j++) {
			const char *text = NULL;
			uint64_t number = 0;

			if (!entry_value(head, in, formats[j][1], &text, &number))
				return -EINVAL;
			if (formats[j][0] == DW_LNCT_path)
				name = text;
			else if (formats[j][0] == DW_LNCT_directory_index)
				dir = number;
		}
		failed = are_files ? add_file(lines, name, dir) : add_dir(lines, name);
		if (failed)
			return failed;
	}
	return in->bad ? -EINVAL : 0;
}

static int read_head(struct weft__lines *lines, struct head *head, uint64_t offset)
{
	struct weft__in in = weft__in(head->sections->line, head->sections->line_n), names;
	uint64_t bytes, head_bytes;
	uint32_t i, most_ops = 1;
	int failed;

	in_bytes(&in, offset);
	bytes = in_fixed(&in, 4);
	head->offset_bytes = bytes == UINT32_MAX ? 8 : 4;
	if (bytes == UINT32_MAX)
		bytes = in_fixed(&in, 8);
	if (in.bad || bytes > in_left(&in))
		return -EINVAL;
	in.end = in.p + bytes;
	head->version = (uint32_t)in_fixed(&in, 2);
	if (head->version < 2 || head->version > 5)
		return -EINVAL;
	if (head->version == 5) {
		head->address_bytes = in_u8(&in);
		if (in_u8(&in)) /* segments */
			return -EINVAL;
	}
	head_bytes = in_fixed(&in, head->offset_bytes);
	if (in.bad || head_bytes > in_left(&in))
		return -EINVAL;
	names = weft__in(in.p, head_bytes);
	head->in = weft__in(in.p + head_bytes, in_left(&in) - head_bytes);
	head->min_bytes = in_u8(&names);
	if (head->version >= 4)
		most_ops = in_u8(&names);
	in_u8(&names);                                            /* whether rows are statements */
	head->line_base = (int32_t)(in_u8(&names) ^ 0x80) - 0x80; /* signed */
	head->line_range = in_u8(&names);
	head->opcode_base = in_u8(&names);
	for (i = 1; i < head->opcode_base; i++)
		head->lengths[i] = in_u8(&names);
	if (names.bad || most_ops != 1 || !head->line_range || !head->opcode_base ||
	    (head->address_bytes != 4 && head->address_bytes != 8))
		return -EINVAL;
	if (head->version < 5)
		return read_old_names(lines, &names);
	failed = read_list(lines, head, &names, false);
	return failed ? failed : read_list(lines, head, &names, true);
}

struct state {
	uint64_t address;
	uint32_t file;
	uint32_t line;
	size_t first; /* row of the sequence */
	bool in_order;
};

static int add_row(struct weft__lines *lines, struct state *state, bool end)
{
	struct weft__line_row *rows = weft__grow(lines->rows, &lines->cap, lines->n, sizeof(*rows));

	if (!rows)
		return -ENOMEM;
	lines->rows = rows;
	if (lines->n > state->first && rows[lines->n - 1].address > state->address)
		state->in_order = false;
	rows[lines->n++] = (struct weft__line_row){state->address, state->line, end ? END : state->file};
	return 0;
}

static void begin_sequence(const struct weft__lines *lines, struct state *state)
{
	*state = (struct state){0, 1, 1, lines->n, true};
}

/* What the linker dropped is left at address 0, or at the highest, and counts for nothing. */
static int end_sequence(struct weft__lines *lines, struct state *state)
{
	struct weft__line_sequence *sequences;
	struct weft__line_row *first = lines->rows + state->first;

	if (!state->in_order)
		return -EINVAL;
	if (!first->address || first->address >= UINT64_MAX - 1 || lines->n - state->first < 2) {
		lines->n = state->first;
		return 0;
	}
	sequences = weft__grow(lines->sequences, &lines->cap_sequences, lines->n_sequences, sizeof(*sequences));
	if (!sequences)
		return -ENOMEM;
	lines->sequences = sequences;
	sequences[lines->n_sequences++] =
		(struct weft__line_sequence){first->address, state->first, lines->n - state->first};
	return 0;
}

static int extended(struct weft__lines *lines, struct head *head, struct state *state)
{
	uint64_t n = in_varint(&head->in);
	const uint8_t *bytes = in_bytes(&head->in, n);
	struct weft__in in;
	const char *name;
	int failed;

	if (!bytes)
		return -EINVAL;
	in = weft__in(bytes, n);
	switch (in_u8(&in)) {
	case DW_LNE_end_sequence:
		failed = add_row(lines, state, true);
		if (!failed)
			failed = end_sequence(lines, state);
		begin_sequence(lines, state);
		return failed;
	case DW_LNE_set_address:
		state->address = in_fixed(&in, in_left(&in) < 8 ? (uint32_t)in_left(&in) : 8);
		return 0;
	case DW_LNE_define_file:
		name = in_text(&in);
		return add_file(lines, name, in_varint(&in));
	}
	return 0;
}

static int standard(struct weft__lines *lines, struct head *head, struct state *state, uint8_t opcode)
{
	uint32_t i;

	switch (opcode) {
	case DW_LNS_copy:
		return add_row(lines, state, false);
	case DW_LNS_advance_pc:
		state->address += in_varint(&head->in) * head->min_bytes;
		break;
	case DW_LNS_advance_line:
		state->line += (uint32_t)in_sleb(&head->in);
		break;
	case DW_LNS_set_file:
		state->file = in_u32(&head->in);
		break;
	case DW_LNS_const_add_pc:
		state->address += (255 - head->opcode_base) / head->line_range * head->min_bytes;
		break;
	case DW_LNS_fixed_advance_pc:
		state->address += in_fixed(&head->in, 2);
		break;
	default:
		for (i = 0; i < head->lengths[opcode]; i++)
			in_varint(&head->in);
	}
	return 0;
}

static int run(struct weft__lines *lines, struct head *head)
{
	struct state state;
	int failed = 0;

	begin_sequence(lines, &state);
	while (!failed && in_left(&head->in)) {
		uint8_t opcode = in_u8(&head->in);

		if (opcode >= head->opcode_base) {
			uint32_t step = opcode - head->opcode_base;

			state.address += step / head->line_range * head->min_bytes;
			state.line += (uint32_t)(head->line_base + (int32_t)(step % head->line_range));
			failed = add_row(lines, &state, false);
		} else if (opcode) {
			failed = standard(lines, head, &state, opcode);
		} else {
			failed = extended(lines, head, &state);
		}
	}
	lines->n = state.first; /* what has no end is not used */
	return failed ? failed : head->in.bad ? -EINVAL : 0;
}

static int by_start(const void *a, const void *b)
{
	const struct weft__line_sequence *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return (x->first > y->first) - (x->first < y->first);
}

int weft__lines_read(struct weft__lines *lines, const struct weft__lines_sections *sections, uint64_t offset,
		     uint32_t address_bytes, const char *comp_dir)
{
	struct head head = {.sections = sections, .address_bytes = address_bytes};
	int failed;

	lines->comp_dir = comp_dir;
	failed = sections->line ? read_head(lines, &head, offset) : -EINVAL;
	if (!failed)
		failed = run(lines, &head);
	if (!failed && lines->n_sequences)
		qsort(lines->sequences, lines->n_sequences, sizeof(*lines->sequences), by_start);
	return failed;
}

/* The last of the rows that begin at the address or before it. */
static const struct weft__line_row *find_row(const struct weft__line_row *rows, size_t n, uint64_t address)
{
	size_t low = 0, high = n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (rows[middle].address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low && rows[low - 1].file != END ? &rows[low - 1] : NULL;
}

const struct weft__line_row *weft__lines_find(const struct weft__lines *lines, uint64_t address)
{
	const struct weft__line_sequence *sequences = lines->sequences;
	const struct weft__line_row *row = NULL;
	size_t low = 0, high = lines->n_sequences;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (sequences[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	/* Sequences may start at the same address; an empty one says nothing. */
	while (low && !row) {
		low--;
		row = find_row(lines->rows + sequences[low].first, sequences[low].n, address);
		if (!row && low && sequences[low - 1].start != sequences[low].start)
			break;
	}
	return row;
}

int weft__lines_file(struct weft__lines *lines, struct weft__texts *texts, uint32_t file, const char **ret)
{
	struct weft__line_file *one = file < lines->n_files ? &lines->files[file] : NULL;
	const char *dir, *base = lines->comp_dir;
	char path[PATH_MAX];

	*ret = NULL;
	if (!one || !one->name)
		return 0;
	if (!one->path) {
		dir = one->dir < lines->n_dirs ? lines->dirs[one->dir] : NULL;
		if (one->name[0] == '/' || !dir || !dir[0])
			snprintf(path, sizeof(path), "%s", one->name);
		else if (dir[0] == '/' || dir == base || !base || !base[0])
			snprintf(path, sizeof(path), "%s/%s", dir, one->name);
		else
			snprintf(path, sizeof(path), "%s/%s/%s", base, dir, one->name);
		one->path = weft__texts_add(texts, path);
	}
	*ret = one->path;
	return one->path ? 0 : -ENOMEM;
}

void weft__lines_fini(struct weft__lines *lines)
{
	weft__free(lines->rows);
	weft__free(lines->sequences);
	weft__free(lines->files);
	weft__free(lines->dirs);
	memset(lines, 0, sizeof(*lines));
}
