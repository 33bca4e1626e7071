/* SPDX-License-Identifier: Apache-2.0 */
/* Names that the command found in files of this machine (cli/view_names.c) and segments do not have. Lines, with
 * fields between tabs:
 *
 *     R  id of the recording, hex  number of the dump
 *     S  id of the module  offset, hex
 *     F  line  1 when inlined  file  function      each frame of that place, innermost first
 *     D  address, hex  name                        a variable
 *
 * In texts \t, \n and \\ stand for a tab, an end of line and a backslash. A line that is none of these is left out. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "names.h"

#include "base/alloc.h"
#include "symbol/data.h"

#define FRAMES_MAX 64u

struct reading {
	struct weft__recordings *list;
	struct weft__recording *rec;
	struct weft_symbol_frame frames[FRAMES_MAX];
	struct weft_symbol_def def;
};

static void unescape(char *text)
{
	char *to = text;

	for (; *text; text++) {
		if (text[0] == '\\' && text[1]) {
			text++;
			*to++ = *text == 't' ? '\t' : *text == 'n' ? '\n' : *text;
		} else {
			*to++ = *text;
		}
	}
	*to = 0;
}

/* The next field, ended by a tab; "" behind the last. */
static char *field(char **line)
{
	char *at = *line, *tab = strchr(at, '\t');

	*line = tab ? tab + 1 : at + strlen(at);
	if (tab)
		*tab = 0;
	return at;
}

static int flush(struct reading *r)
{
	int rc = 0;

	if (r->rec && r->def.n_frames)
		rc = weft__frames_add_symbol(&r->rec->frames, &r->def);
	r->def.n_frames = 0;
	return rc;
}

static void recording(struct reading *r, char *line)
{
	const char *id = field(&line);
	uint64_t dump = strtoull(field(&line), NULL, 10);
	char hex[33];
	size_t i, j;

	r->rec = NULL;
	for (i = 0; i < r->list->n; i++) {
		for (j = 0; j < 16; j++) {
			hex[2 * j] = "0123456789abcdef"[r->list->all[i].id[j] >> 4];
			hex[2 * j + 1] = "0123456789abcdef"[r->list->all[i].id[j] & 15];
		}
		hex[32] = 0;
		if (r->list->all[i].dump == dump && strcmp(hex, id) == 0)
			r->rec = &r->list->all[i];
	}
}

static void site(struct reading *r, char *line)
{
	r->def.module = (uint32_t)strtoul(field(&line), NULL, 10);
	r->def.offset = strtoull(field(&line), NULL, 16);
	r->def.frames = r->frames;
}

static void frame(struct reading *r, char *line)
{
	struct weft_symbol_frame *to = &r->frames[r->def.n_frames];
	char *file, *function;

	if (r->def.n_frames == FRAMES_MAX)
		return;
	memset(to, 0, sizeof(*to));
	to->line = (uint32_t)strtoul(field(&line), NULL, 10);
	to->inlined = field(&line)[0] == '1';
	file = field(&line);
	function = field(&line);
	unescape(file);
	unescape(function);
	to->file = file;
	to->function = function;
	r->def.n_frames++;
}

static int variable(struct reading *r, char *line)
{
	uint64_t address = strtoull(field(&line), NULL, 16);
	struct weft__frames *frames = r->rec ? &r->rec->frames : NULL;
	char *name = field(&line);
	uint32_t at;

	if (!frames)
		return 0;
	unescape(name);
	weft__frames_want_data(frames, address);
	at = weft__map_get(&frames->data_by_address, address);
	if (at == WEFT__MAP_NONE)
		return 0;
	frames->data[at].name = weft__texts_add(&frames->texts, name);
	return frames->data[at].name ? 0 : -ENOMEM;
}

static int one_line(struct reading *r, char *line)
{
	char what = line[0];
	int rc = 0;

	if (!what || line[1] != '\t')
		return 0;
	line += 2;
	if (what != 'F')
		rc = flush(r);
	if (what == 'R')
		recording(r, line);
	else if (what == 'S')
		site(r, line);
	else if (what == 'F' && r->def.frames)
		frame(r, line);
	else if (what == 'D' && rc == 0)
		rc = variable(r, line);
	return rc;
}

int view_names_read(struct weft__recordings *list, char *text)
{
	struct reading r = {.list = list};
	char *next;
	int rc = 0;

	for (; *text && rc == 0; text = next) {
		next = strchr(text, '\n');
		next = next ? next + 1 : text + strlen(text);
		if (next[-1] == '\n')
			next[-1] = 0;
		rc = one_line(&r, text);
	}
	return rc < 0 ? rc : flush(&r);
}
