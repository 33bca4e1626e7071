/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/annotate_names.h"

#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "segment/format.h"

#define BLOCK_BYTES (1u << 20) /* of one block, about */
#define ONE_MOST 64            /* frames of one place */

/* Somewhat below what readers take (docs/FORMAT.md, "Definitions"). */
#define NAMES_MAX (RECORDS_MAX - RECORDS_MAX / 8)
#define TEXT_MAX (56u << 20)
#define FRAMES_MAX (SYMBOL_FRAMES_MAX - SYMBOL_FRAMES_MAX / 8)

int weft__naming_init(struct weft__naming *out, const struct weft_segment *seg)
{
	const struct weft_string_def *names = seg->names.items;
	size_t i;

	memset(out, 0, sizeof(*out));
	out->next_id = 1;
	out->n_names = seg->names.n;
	out->n_symbols = seg->symbols.n;
	out->n_frames = seg->n_symbol_frames;
	out->text_bytes = seg->text_bytes;
	for (i = 0; i < seg->names.n; i++) {
		size_t n = strlen(names[i].text);

		if (names[i].id >= out->next_id)
			out->next_id = names[i].id + 1;
		if (names[i].id && !weft__intern_get(&out->ids, names[i].text, n) &&
		    weft__intern_add(&out->ids, names[i].text, n, names[i].id) < 0)
			return -ENOMEM;
	}
	return 0;
}

void weft__naming_fini(struct weft__naming *out)
{
	size_t i;

	for (i = 0; i < out->n_blocks; i++)
		weft__defs_fini(&out->blocks[i]);
	weft__free(out->blocks);
	weft__intern_fini(&out->ids);
	weft__buf_free(&out->clean);
	memset(out, 0, sizeof(*out));
}

static struct weft__defs *block_of(struct weft__naming *out)
{
	struct weft__defs *blocks;

	if (out->n_blocks && out->blocks[out->n_blocks - 1].out.n < BLOCK_BYTES)
		return &out->blocks[out->n_blocks - 1];
	blocks = weft__grow(out->blocks, &out->cap_blocks, out->n_blocks, sizeof(*blocks));
	if (!blocks)
		return NULL;
	out->blocks = blocks;
	blocks[out->n_blocks] = (struct weft__defs){.n = 0};
	return &blocks[out->n_blocks++];
}

/* The bytes of the character that begins here, or 0 when it is not UTF-8. */
static size_t character(const uint8_t *p)
{
	size_t n = *p < 0x80                 ? 1
		   : *p >= 0xc2 && *p < 0xe0 ? 2
		   : *p >= 0xe0 && *p < 0xf0 ? 3
		   : *p >= 0xf0 && *p < 0xf5 ? 4
					     : 0;
	size_t i;

	for (i = 1; i < n; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	if ((*p == 0xe0 && p[1] < 0xa0) || (*p == 0xed && p[1] > 0x9f) || (*p == 0xf0 && p[1] < 0x90) ||
	    (*p == 0xf4 && p[1] > 0x8f))
		return 0;
	return n;
}

/* Texts of segments are UTF-8; what files and JITs have may be anything. */
static const char *cleaned(struct weft__naming *out, const char *text)
{
	const uint8_t *p = (const uint8_t *)text;

	while (*p && character(p))
		p += character(p);
	if (!*p)
		return text;
	weft__buf_clear(&out->clean);
	for (p = (const uint8_t *)text; *p;) {
		size_t n = character(p);

		weft__buf_put(&out->clean, n ? p : (const uint8_t *)"?", n ? n : 1);
		p += n ? n : 1;
	}
	weft__buf_u8(&out->clean, 0);
	return out->clean.oom ? NULL : (const char *)out->clean.bytes;
}

/* The id of the text, 0 for none; -ENOMEM. Defined now if it was not. */
static int name_id(struct weft__naming *out, struct weft__defs *defs, const char *text, uint32_t *ret)
{
	size_t n;

	*ret = 0;
	if (!text || !text[0])
		return 0;
	text = cleaned(out, text);
	if (!text)
		return -ENOMEM;
	n = strlen(text);
	*ret = weft__intern_get(&out->ids, text, n);
	if (*ret)
		return 0;
	if (weft__intern_add(&out->ids, text, n, out->next_id) < 0)
		return -ENOMEM;
	*ret = out->next_id++;
	out->n_names++;
	out->text_bytes += n + 1;
	weft__defs_name(defs, *ret, text);
	return 0;
}

int weft__naming_add(struct weft__naming *out, uint32_t module, uint64_t offset,
		     const struct weft__symbol_frames *frames)
{
	struct weft__symbol_names names[ONE_MOST];
	uint32_t i, n = frames->n < ONE_MOST ? frames->n : ONE_MOST;
	struct weft__defs *defs;

	if (out->n_names + 2u * n > NAMES_MAX || out->n_symbols >= NAMES_MAX || out->n_frames + n > FRAMES_MAX ||
	    out->text_bytes > TEXT_MAX)
		return 0;
	defs = block_of(out);
	if (!defs)
		return -ENOMEM;
	for (i = 0; i < n; i++) {
		const struct weft__symbol *frame = &frames->at[i];

		names[i] = (struct weft__symbol_names){.line = frame->line, .inlined = frame->inlined};
		if (name_id(out, defs, frame->function, &names[i].function) < 0 ||
		    name_id(out, defs, frame->file, &names[i].file) < 0)
			return -ENOMEM;
	}
	weft__defs_symbol(defs, module, offset, names, n);
	out->n_symbols++;
	out->n_frames += n;
	return weft__defs_oom(defs) ? -ENOMEM : 1;
}
