/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol/kallsyms.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

#define LAST_BYTES 4096 /* what the last symbol is taken to span, as nobody says */
#define SYMS_MAX ((size_t)1 << 24)

static int add(struct weft__kallsyms *syms, uint64_t address, char *name)
{
	struct weft__kallsym *at = weft__grow(syms->at, &syms->cap, syms->n, sizeof(*at));

	if (!at)
		return -ENOMEM;
	syms->at = at;
	at[syms->n++] = (struct weft__kallsym){address, name};
	return 0;
}

/* One line, which the caller ended with a 0. */
static int line(struct weft__kallsyms *syms, char *text)
{
	char *p, *name;
	uint64_t address = strtoull(text, &p, 16);

	if (p == text || p[0] != ' ' || !p[1] || p[2] != ' ' || !p[3])
		return 0;
	if (!address) {
		syms->hidden = 1;
		return 0;
	}
	if (!strchr("tTwW", p[1]))
		return 0;
	name = p + 3;
	name[strcspn(name, " \t\r")] = 0;
	if (!strcmp(name, "_stext") || (!syms->text && !strcmp(name, "_text")))
		syms->text = address;
	return syms->n < SYMS_MAX ? add(syms, address, name) : 0;
}

static int by_address(const void *a, const void *b)
{
	const struct weft__kallsym *x = a, *y = b;

	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	return x->name < y->name ? -1 : x->name > y->name;
}

int weft__kallsyms_parse(struct weft__kallsyms *syms, char *text)
{
	size_t i;

	while (*text) {
		size_t n = strcspn(text, "\n");
		bool last = !text[n];

		text[n] = 0;
		if (line(syms, text) < 0)
			return -ENOMEM;
		text += n + !last;
	}
	if (syms->n) {
		syms->hidden = 0;
		qsort(syms->at, syms->n, sizeof(*syms->at), by_address);
	}
	for (i = 0; i < syms->n; i++) {
		uint64_t lo = syms->at[i].address;
		uint64_t hi = i + 1 < syms->n ? syms->at[i + 1].address : lo + LAST_BYTES;

		if (weft__ranges_add(&syms->ranges, lo, hi < lo ? UINT64_MAX : hi, (uint32_t)i, SYMS_MAX) == -ENOMEM)
			return -ENOMEM;
	}
	return weft__ranges_seal(&syms->ranges);
}

const struct weft__kallsym *weft__kallsyms_get(const struct weft__kallsyms *syms, uint64_t address)
{
	uint32_t i = weft__ranges_find(&syms->ranges, address);

	return i == WEFT__RANGE_NONE ? NULL : &syms->at[i];
}

void weft__kallsyms_fini(struct weft__kallsyms *syms)
{
	weft__ranges_fini(&syms->ranges);
	weft__free(syms->at);
	memset(syms, 0, sizeof(*syms));
}
