/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/intern.h"
#include "base/map.h"
#include "base/sort.h"
#include "unwind/row.h"
#include "unwind/table.h"

/* Code of one image that is further apart than this is not believed. */
#define SPAN_MAX (1ull << 31)
#define ROWS_MAX (1u << 28)
/* Rows name rules with 16 bits. Near the end only the part that nearly every walk needs is kept. */
#define RULES_MAX 65535u
#define RULES_WHOLE 61440u
/* Nobody jumps into what fills the space between functions, so the rows of the one before go on through it. */
#define PADDING 16
#define SPECIALS_MAX (1u << 20)
/* Entries between two questions whether to go on: tenths of a millisecond. */
#define HALT_EVERY 512

struct listed {
	uint64_t begin;
	uint32_t at;
	uint32_t from; /* which section */
};

struct builder {
	struct weft__cfi cfi[2];
	const struct weft__cfi *now; /* whose rows are being made */
	struct weft__unwind_table_stats stats;
	struct listed *list;
	size_t n_list, list_cap;
	uint32_t *row_at;
	uint16_t *row_rule;
	size_t n_rows, row_at_cap, row_rule_cap;
	struct weft__rule *rules;
	size_t n_rules, rules_cap;
	struct weft__map rule_ids; /* hash of a rule, or the next free number behind it, to its number */
	uint8_t *specials;
	size_t specials_n, specials_cap;
	struct weft__intern special_ids;
	uint64_t end;         /* of the code that has rows */
	uint64_t base, limit; /* rows end at limit: where the next entry begins */
	int oom, eh_return;
	int halted;
	int (*halt)(void);
	struct cfi_row last_row; /* and the rule that it gave: rows repeat */
	uint32_t last_rule;
};

/* Whether to leave it, asked before the entry of that number. */
static int given_up(struct builder *b, size_t entry)
{
	if (entry % HALT_EVERY == 0 && b->halt && !b->halted)
		b->halted = b->halt();
	return b->oom || b->halted;
}

static int by_begin(const void *a, const void *b)
{
	const struct listed *x = a, *y = b;

	if (x->begin != y->begin)
		return x->begin < y->begin ? -1 : 1;
	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	return x->at < y->at ? -1 : x->at > y->at;
}

static void list_add(struct builder *b, uint32_t from, const struct cfi_fde *fde)
{
	void *room;

	if (fde->begin >= fde->end || fde->begin < b->cfi[from].in.text_low || fde->end > b->cfi[from].in.text_high)
		return;
	room = weft__grow(b->list, &b->list_cap, b->n_list, sizeof(*b->list));
	if (!room) {
		b->oom = 1;
		return;
	}
	b->list = room;
	b->list[b->n_list++] = (struct listed){fde->begin, fde->at, from};
}

static void list_section(struct builder *b, uint32_t from)
{
	struct weft__cfi *cfi = &b->cfi[from];
	uint32_t listed = weft__cfi_listed(cfi);
	struct cfi_fde fde;
	uint64_t at = 0;

	for (uint32_t i = 0; i < listed && !given_up(b, i); i++) {
		if (weft__cfi_listed_at(cfi, i, &at) == 0 && weft__cfi_fde(cfi, at, &fde) == 0)
			list_add(b, from, &fde);
		else
			b->stats.bad_fdes++;
	}
	at = 0;
	while (!listed && !given_up(b, b->n_list) && weft__cfi_next(cfi, &at, &fde, &b->stats.bad_fdes))
		list_add(b, from, &fde);
}

/* All entries, in the order of their code. */
static void list_make(struct builder *b, unsigned n_sections)
{
	size_t n = 0;

	for (uint32_t from = 0; from < n_sections; from++)
		list_section(b, from);
	for (size_t i = 1; i < b->n_list; i++) {
		if (by_begin(&b->list[i - 1], &b->list[i]) > 0) {
			weft__sort(b->list, b->n_list, sizeof(*b->list), by_begin);
			break;
		}
	}
	for (size_t i = 0; i < b->n_list; i++)
		if (n == 0 || b->list[i].begin != b->list[n - 1].begin)
			b->list[n++] = b->list[i];
	b->n_list = n;
}

static uint64_t rule_hash(const struct weft__rule *rule)
{
	const uint8_t *p = (const uint8_t *)rule;
	uint64_t h = 0;
	uint32_t word;

	for (size_t i = 0; i < sizeof(*rule); i += 4) {
		memcpy(&word, p + i, 4);
		h = (h ^ word) * 0x9e3779b97f4a7c15u;
		h ^= h >> 29;
	}
	return h;
}

_Static_assert(sizeof(struct weft__rule) % 4 == 0, "rules are hashed in words, and have no holes");

/* The number of a rule, which is new perhaps; 0 when it is new and there are `max` already. */
static uint32_t rule_number(struct builder *b, const struct weft__rule *rule, size_t max)
{
	uint64_t hash = rule_hash(rule);
	uint32_t at;
	void *room;

	for (; (at = weft__map_get(&b->rule_ids, hash)) != WEFT__MAP_NONE; hash++) /* the same hash: one behind */
		if (memcmp(&b->rules[at], rule, sizeof(*rule)) == 0)
			return at;
	if (b->n_rules >= max)
		return 0;
	room = weft__grow(b->rules, &b->rules_cap, b->n_rules, sizeof(*b->rules));
	if (room)
		b->rules = room;
	if (!room || weft__map_put(&b->rule_ids, hash, (uint32_t)b->n_rules) < 0) {
		b->oom = 1;
		return 0;
	}
	b->rules[b->n_rules] = *rule;
	return (uint32_t)b->n_rules++;
}

/* The row as a special, in bytes aside; answers its place, or -1. */
static int64_t special_add(struct builder *b, const struct cfi_row *row)
{
	union weft__special_room u;
	struct weft__special *special = &u.special;
	uint32_t id;

	if (weft__row_special(row, b->now->in.bytes, &u) < 0)
		return -1;
	id = weft__intern_get(&b->special_ids, &u, special->bytes);
	if (id)
		return (int64_t)id - 1;
	if (b->specials_n + special->bytes > SPECIALS_MAX)
		return -1;
	while (b->specials_n + special->bytes > b->specials_cap) {
		void *room = weft__grow(b->specials, &b->specials_cap, b->specials_cap, 1);

		if (!room)
			return -1;
		b->specials = room;
	}
	if (weft__intern_add(&b->special_ids, &u, special->bytes, (uint32_t)b->specials_n + 1) < 0)
		return -1;
	memcpy(b->specials + b->specials_n, &u, special->bytes);
	b->specials_n += special->bytes;
	return (int64_t)(b->specials_n - special->bytes);
}

/* The number of the rule that a row stands for. */
static uint32_t row_rule(struct builder *b, const struct cfi_row *row)
{
	struct weft__rule rule;
	uint32_t number;

	weft__row_rule(row, &rule);
	if (rule.kind == RULE_SPECIAL) {
		int64_t at = special_add(b, row);

		b->eh_return |= !row->signal && row->reg[row->ra_reg].how == CFI_REGISTER;
		if (at < 0) {
			b->stats.lost_rules++;
			return 0;
		}
		rule.cfa_off = (int32_t)at;
	}
	number = rule_number(b, &rule, RULES_WHOLE);
	if (number || b->oom)
		return number;
	for (int i = 0; i < ARCH_SAVED && rule.kind == RULE_PLAIN; i++)
		if (i != ARCH_SAVED_FP && weft__saved_regs[i] != ARCH_RA)
			rule.saved[i] = RULE_UNDEFINED;
	number = rule_number(b, &rule, RULES_MAX);
	if (number)
		b->stats.cut_rules++;
	else
		b->stats.lost_rules++;
	return number;
}

static void emit(struct builder *b, uint64_t pc, uint32_t rule)
{
	uint32_t at = (uint32_t)(pc - b->base);
	void *room;

	if (b->n_rows > 1 && b->row_at[b->n_rows - 1] == at)
		b->n_rows--;
	if (b->n_rows && b->row_rule[b->n_rows - 1] == rule)
		return;
	room = weft__grow(b->row_at, &b->row_at_cap, b->n_rows, sizeof(*b->row_at));
	if (!room) {
		b->oom = 1;
		return;
	}
	b->row_at = room;
	room = weft__grow(b->row_rule, &b->row_rule_cap, b->n_rows, sizeof(*b->row_rule));
	if (!room || b->n_rows >= ROWS_MAX) {
		b->oom = 1;
		return;
	}
	b->row_rule = room;
	b->row_at[b->n_rows] = at;
	b->row_rule[b->n_rows++] = (uint16_t)rule;
}

static void on_row(void *arg, uint64_t pc, const struct cfi_row *row)
{
	struct builder *b = arg;

	if (pc >= b->limit || pc - b->base >= SPAN_MAX || b->oom)
		return;
	if (!b->last_rule || memcmp(row, &b->last_row, sizeof(*row)) != 0) {
		b->last_rule = row_rule(b, row);
		b->last_row = *row;
	}
	emit(b, pc, b->last_rule);
}

static void rows_make(struct builder *b)
{
	emit(b, b->base, 0);
	for (size_t i = 0; i < b->n_list && !given_up(b, i); i++) {
		struct weft__cfi *cfi = &b->cfi[b->list[i].from];
		struct cfi_fde fde;
		uint64_t next = i + 1 < b->n_list ? b->list[i + 1].begin : UINT64_MAX;

		if (b->list[i].begin - b->base >= SPAN_MAX || weft__cfi_fde(cfi, b->list[i].at, &fde) < 0) {
			b->stats.bad_fdes++;
			continue;
		}
		if (cfi != b->now)
			b->last_rule =
				0; /* expressions are places in the section: equal rows of two are not the same */
		b->now = cfi;
		b->limit = next;
		b->stats.fdes++;
		b->stats.code_bytes += (next < fde.end ? next : fde.end) - fde.begin;
		if (weft__cfi_run(cfi, &fde, on_row, b) < 0)
			b->stats.bad_fdes++;
		if (next > fde.end && next - fde.end >= PADDING && fde.end - b->base < SPAN_MAX)
			emit(b, fde.end, 0);
		if (fde.end > b->end)
			b->end = fde.end;
	}
}

/* One piece of memory: the table, then its arrays. */
static struct weft__unwind_table *freeze(const struct builder *b)
{
	uint64_t bytes = b->end - b->base > SPAN_MAX ? SPAN_MAX : b->end - b->base;
	uint32_t n_pages = (uint32_t)((bytes + (1u << TABLE_PAGE_BITS) - 1) >> TABLE_PAGE_BITS), page = 0;
	size_t n_rules = b->n_rules * sizeof(*b->rules), pages = (n_pages + (size_t)1) * sizeof(uint32_t);
	size_t head = (sizeof(struct weft__unwind_table) + 7) & ~(size_t)7, low, rule;
	size_t all = head + b->specials_n + n_rules + pages + b->n_rows * 4;
	struct weft__unwind_table *table = weft__alloc(all);
	char *at = (char *)table;
	uint32_t *first;
	uint16_t *row_low;

	if (!table)
		return NULL;
	memset(table, 0, sizeof(*table));
	table->base = b->base;
	table->bytes = bytes;
	table->n_pages = n_pages;
	table->n_rows = (uint32_t)b->n_rows;
	table->n_rules = (uint32_t)b->n_rules;
	table->specials_n = (uint32_t)b->specials_n;
	table->memory_bytes = all;
	table->stats = b->stats;
	table->eh_return = b->eh_return;
	if (b->specials_n)
		memcpy(at + head, b->specials, b->specials_n);
	table->specials = (uint8_t *)at + head;
	memcpy(at + head + b->specials_n, b->rules, n_rules);
	table->rules = (void *)(at + head + b->specials_n);
	first = (void *)(at + head + b->specials_n + n_rules);
	low = head + b->specials_n + n_rules + pages;
	rule = low + b->n_rows * 2;
	row_low = (void *)(at + low);
	memcpy(at + rule, b->row_rule, b->n_rows * 2);
	/* Row 0 is before page 0, so that no search has to look whether there is a row before. */
	for (size_t i = 0; i < b->n_rows; i++) {
		row_low[i] = (uint16_t)(b->row_at[i] & ((1u << TABLE_PAGE_BITS) - 1));
		for (; i && page <= b->row_at[i] >> TABLE_PAGE_BITS; page++)
			first[page] = (uint32_t)i;
	}
	for (; page <= n_pages; page++)
		first[page] = (uint32_t)b->n_rows;
	table->page = first;
	table->row_low = row_low;
	table->row_rule = (void *)(at + rule);
	return table;
}

int weft__unwind_table_make(struct weft__unwind_table **ret, const struct weft__cfi_input *in, unsigned n,
			    int (*halt)(void))
{
	struct builder *b = weft__calloc(1, sizeof(*b));
	struct weft__unwind_table *table = NULL;
	static const struct weft__rule none;
	int result;

	if (!b)
		return -ENOMEM;
	b->halt = halt;
	n = n < 2 ? n : 2;
	for (unsigned i = 0; i < n; i++)
		weft__cfi_init(&b->cfi[i], &in[i]);
	list_make(b, n);
	if (b->n_list && !b->oom && !b->halted) {
		b->base = b->list[0].begin & ~((1ull << TABLE_PAGE_BITS) - 1);
		b->rules = weft__grow(NULL, &b->rules_cap, 0, sizeof(*b->rules));
		if (b->rules) {
			b->rules[b->n_rules++] = none;
			rows_make(b);
			if (!b->oom && !b->halted && b->n_rows > 1)
				table = freeze(b);
			b->oom |= b->n_rows > 1 && !table && !b->halted;
		} else {
			b->oom = 1;
		}
	}
	if (table)
		*ret = table;
	weft__intern_fini(&b->special_ids);
	weft__free(b->list);
	weft__free(b->row_at);
	weft__free(b->row_rule);
	weft__free(b->rules);
	weft__map_fini(&b->rule_ids);
	weft__free(b->specials);
	result = table ? 0 : b->oom ? -ENOMEM : b->halted ? -ECANCELED : -ENOENT;
	weft__free(b);
	return result;
}

int weft__unwind_table_new(struct weft__unwind_table **ret, const struct weft__cfi_input *in, unsigned n)
{
	return weft__unwind_table_make(ret, in, n, NULL);
}

void weft__unwind_table_free(struct weft__unwind_table *table)
{
	weft__free(table);
}
