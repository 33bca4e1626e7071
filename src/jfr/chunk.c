/* SPDX-License-Identifier: Apache-2.0 */
/* The header of a chunk, and its classes. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "jfr/jfr.h"

#define HEADER_BYTES 68
#define VERSION 2
#define COMPRESSED 1u
#define DEPTH_MAX 16
#define CLASSES_MAX 65536u
#define CHUNK_MOST UINT32_MAX /* offsets in it are kept in 32 bits */

enum plain { FIELDS, ONE_BYTE, NUMBER, FOUR_BYTES, EIGHT_BYTES, TEXT };

void weft__jfr_init(struct weft__jfr *jfr, const void *bytes, size_t n)
{
	*jfr = (struct weft__jfr){.bytes = bytes, .n = n};
}

static void forget(struct weft__jfr *jfr)
{
	size_t i;

	jfr->n_strings = jfr->n_classes = jfr->n_fields = 0;
	weft__map_fini(&jfr->class_by_number);
	memset(jfr->pool_class, 0, sizeof(jfr->pool_class));
	for (i = 0; i < WEFT__JFR_N_POOLS; i++)
		weft__map_fini(&jfr->pools[i]);
}

void weft__jfr_fini(struct weft__jfr *jfr)
{
	forget(jfr);
	weft__free(jfr->strings);
	weft__free(jfr->classes);
	weft__free(jfr->fields);
	*jfr = (struct weft__jfr){0};
}

bool weft__jfr_is(const void *bytes, size_t n)
{
	return n >= 4 && memcmp(bytes, "FLR\0", 4) == 0;
}

bool weft__jfr_same(struct weft__jfr_text text, const char *other)
{
	return text.n == strlen(other) && memcmp(text.at, other, text.n) == 0;
}

static uint64_t big_endian(const uint8_t *p, unsigned n)
{
	uint64_t v = 0;

	while (n--)
		v = v << 8 | *p++;
	return v;
}

uint64_t weft__jfr_varint(struct weft__in *in)
{
	uint64_t v = 0;
	unsigned i;

	for (i = 0; i < 8; i++) {
		uint8_t byte = in_u8(in);

		v |= (uint64_t)(byte & 0x7f) << 7 * i;
		if (byte < 0x80)
			return v;
	}
	return v | (uint64_t)in_u8(in) << 56;
}

bool weft__jfr_read_text(struct weft__in *in, struct weft__jfr_text *ret, uint64_t *pooled)
{
	uint8_t how = in_u8(in);
	uint64_t n, i;

	*ret = (struct weft__jfr_text){(const uint8_t *)"", 0};
	*pooled = 0;
	switch (how) {
	case 0: /* none */
		return false;
	case 1: /* empty */
		return !in->bad;
	case 2: /* in the pool of strings */
		*pooled = weft__jfr_varint(in);
		return false;
	case 3: /* UTF-8 */
	case 5: /* Latin-1: names are ASCII, and data is bytes */
		n = weft__jfr_varint(in);
		ret->at = in_bytes(in, n);
		ret->n = ret->at ? (size_t)n : 0;
		return ret->at != NULL;
	case 4: /* characters, each a number: of ASCII that is bytes; other texts end where that ends */
		n = weft__jfr_varint(in);
		ret->at = in->p;
		for (i = 0; i < n && !in->bad; i++)
			if (weft__jfr_varint(in) < 0x80 && ret->n == i)
				ret->n++;
		return !in->bad;
	default:
		in_fail(in);
		return false;
	}
}

const struct weft__jfr_class *weft__jfr_class(const struct weft__jfr *jfr, uint64_t number)
{
	uint32_t at = weft__map_get(&jfr->class_by_number, number);

	return at == WEFT__MAP_NONE ? NULL : &jfr->classes[at];
}

void weft__jfr_skip_field(const struct weft__jfr *jfr, const struct weft__jfr_field *field, struct weft__in *in,
			  unsigned depth)
{
	uint64_t n = field->array ? weft__jfr_varint(in) : 1;

	for (; n && !in->bad; n--) {
		if (field->pooled)
			weft__jfr_varint(in);
		else
			weft__jfr_skip(jfr, field->type, in, depth);
	}
}

void weft__jfr_skip(const struct weft__jfr *jfr, uint64_t type, struct weft__in *in, unsigned depth)
{
	const struct weft__jfr_class *class = weft__jfr_class(jfr, type);
	struct weft__jfr_text text;
	uint64_t pooled;
	uint32_t i;

	/* A value of no bytes could stand there any number of times. */
	if (!class || depth == DEPTH_MAX || (class->plain == FIELDS && class->n == 0)) {
		in_fail(in);
		return;
	}
	switch ((enum plain) class->plain) {
	case ONE_BYTE:
		in_u8(in);
		break;
	case NUMBER:
		weft__jfr_varint(in);
		break;
	case FOUR_BYTES:
		in_bytes(in, 4);
		break;
	case EIGHT_BYTES:
		in_bytes(in, 8);
		break;
	case TEXT:
		weft__jfr_read_text(in, &text, &pooled);
		break;
	case FIELDS:
		for (i = 0; i < class->n && !in->bad; i++)
			weft__jfr_skip_field(jfr, &jfr->fields[class->first + i], in, depth + 1);
	}
}

uint64_t weft__jfr_ns(const struct weft__jfr *jfr, uint64_t ticks)
{
	double since = (double)(int64_t)(ticks - jfr->start_ticks) * 1e9 / (double)jfr->ticks_per_s;
	double at = (double)jfr->start_ns + since;

	if (!(at > 0) || at > 9e18)
		return 0;
	return since < 0 ? jfr->start_ns - (uint64_t)-since : jfr->start_ns + (uint64_t)since;
}

static int read_header(struct weft__jfr *jfr, struct weft_error *err)
{
	const uint8_t *p = jfr->bytes + jfr->at;
	size_t left = jfr->n - jfr->at;
	uint64_t size;

	if (left < HEADER_BYTES || !weft__jfr_is(p, left))
		return weft__fail(err, -WEFT_E_FORMAT, "not a chunk of a Flight Recorder file at byte %zu", jfr->at);
	size = big_endian(p + 8, 8);
	if (big_endian(p + 4, 2) != VERSION || !(big_endian(p + 64, 4) & COMPRESSED))
		return weft__fail(err, -WEFT_E_VERSION, "a Flight Recorder file of another version than 2");
	if (size < HEADER_BYTES || size > left || size > CHUNK_MOST)
		return weft__fail(err, -WEFT_E_FORMAT, "the chunk at byte %zu is not whole: its writer did not end it",
				  jfr->at);
	jfr->chunk = p;
	jfr->chunk_bytes = (size_t)size;
	jfr->pools_at = big_endian(p + 16, 8);
	jfr->metadata_at = big_endian(p + 24, 8);
	jfr->start_ns = big_endian(p + 32, 8);
	jfr->duration_ns = big_endian(p + 40, 8);
	jfr->start_ticks = big_endian(p + 48, 8);
	jfr->ticks_per_s = big_endian(p + 56, 8);
	if (!jfr->ticks_per_s || jfr->metadata_at >= size || jfr->pools_at >= size)
		return weft__fail(err, -WEFT_E_FORMAT, "the header of the chunk at byte %zu is damaged", jfr->at);
	jfr->at += (size_t)size;
	return 0;
}

static int read_strings(struct weft__jfr *jfr, struct weft__in *in)
{
	uint64_t n = weft__jfr_varint(in), pooled;
	struct weft__jfr_text *grown;

	for (; n && !in->bad; n--) {
		grown = weft__grow(jfr->strings, &jfr->cap_strings, jfr->n_strings, sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		jfr->strings = grown;
		weft__jfr_read_text(in, &grown[jfr->n_strings], &pooled);
		jfr->n_strings++;
	}
	return 0;
}

static struct weft__jfr_text string_at(const struct weft__jfr *jfr, uint64_t index)
{
	return index < jfr->n_strings ? jfr->strings[index] : (struct weft__jfr_text){(const uint8_t *)"", 0};
}

static uint64_t number_of(struct weft__jfr_text text)
{
	char digits[24];
	size_t n = text.n < sizeof(digits) ? text.n : sizeof(digits) - 1;

	memcpy(digits, text.at, n);
	digits[n] = 0;
	return strtoull(digits, NULL, 10);
}

static uint8_t plain_of(struct weft__jfr_text name)
{
	static const struct {
		const char *name;
		uint8_t plain;
	} all[] = {{"boolean", ONE_BYTE}, {"byte", ONE_BYTE},      {"short", NUMBER},
		   {"char", NUMBER},      {"int", NUMBER},         {"long", NUMBER},
		   {"float", FOUR_BYTES}, {"double", EIGHT_BYTES}, {"java.lang.String", TEXT}};
	size_t i;

	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (weft__jfr_same(name, all[i].name))
			return all[i].plain;
	return FIELDS;
}

static void set_use(struct weft__jfr *jfr, struct weft__jfr_class *class)
{
	static const char *const pools[] = {
#define X(NAME, class) class,
		WEFT__JFR_POOLS(X)
#undef X
	};
	static const char *const events[] = {
#define X(NAME, class) class,
		WEFT__JFR_EVENTS(X)
#undef X
	};
	uint8_t i;

	for (i = 0; i < WEFT__JFR_N_POOLS; i++)
		if (weft__jfr_same(class->name, pools[i])) {
			class->pool = (uint8_t)(i + 1);
			jfr->pool_class[i] = (uint32_t)(class - jfr->classes) + 1;
		}
	for (i = 0; i < WEFT__JFR_N_KINDS; i++)
		if (weft__jfr_same(class->name, events[i]))
			class->event = (uint8_t)(i + 1);
}

static int add_class(struct weft__jfr *jfr, struct weft__jfr_text name, uint64_t number)
{
	struct weft__jfr_class *grown;

	if (jfr->n_classes == CLASSES_MAX)
		return -WEFT_E_FORMAT;
	grown = weft__grow(jfr->classes, &jfr->cap_classes, jfr->n_classes, sizeof(*grown));
	if (!grown || weft__map_put(&jfr->class_by_number, number, (uint32_t)jfr->n_classes) < 0)
		return -ENOMEM;
	jfr->classes = grown;
	grown[jfr->n_classes] = (struct weft__jfr_class){
		.number = number, .name = name, .first = (uint32_t)jfr->n_fields, .plain = plain_of(name)};
	set_use(jfr, &grown[jfr->n_classes++]);
	return 0;
}

static int add_field(struct weft__jfr *jfr, const struct weft__jfr_field *field)
{
	struct weft__jfr_field *grown;

	if (!jfr->n_classes)
		return 0;
	grown = weft__grow(jfr->fields, &jfr->cap_fields, jfr->n_fields, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	jfr->fields = grown;
	grown[jfr->n_fields++] = *field;
	jfr->classes[jfr->n_classes - 1].n++;
	return 0;
}

/* <class name= id=>, with <field name= class= constantPool= dimension=> in it; others are passed over. */
static int read_element(struct weft__jfr *jfr, struct weft__in *in, unsigned depth)
{
	struct weft__jfr_text what = string_at(jfr, weft__jfr_varint(in));
	struct weft__jfr_field field = {.name = {(const uint8_t *)"", 0}};
	uint64_t n = weft__jfr_varint(in), number = 0;
	int r = 0;

	if (depth == DEPTH_MAX)
		in_fail(in);
	for (; n && !in->bad; n--) {
		struct weft__jfr_text key = string_at(jfr, weft__jfr_varint(in));
		struct weft__jfr_text value = string_at(jfr, weft__jfr_varint(in));

		if (weft__jfr_same(key, "name"))
			field.name = value;
		else if (weft__jfr_same(key, "id"))
			number = number_of(value);
		else if (weft__jfr_same(key, "class"))
			field.type = number_of(value);
		else if (weft__jfr_same(key, "constantPool"))
			field.pooled = weft__jfr_same(value, "true");
		else if (weft__jfr_same(key, "dimension"))
			field.array = !weft__jfr_same(value, "0");
	}
	if (weft__jfr_same(what, "class"))
		r = add_class(jfr, field.name, number);
	else if (weft__jfr_same(what, "field"))
		r = add_field(jfr, &field);
	for (n = weft__jfr_varint(in); n && !in->bad && !r; n--)
		r = read_element(jfr, in, depth + 1);
	return r;
}

static int read_metadata(struct weft__jfr *jfr, struct weft_error *err)
{
	struct weft__in in = weft__in(jfr->chunk + jfr->metadata_at, jfr->chunk_bytes - (size_t)jfr->metadata_at);
	unsigned i;
	int r;

	for (i = 0; i < 5; i++) /* size, type, time, duration, number */
		weft__jfr_varint(&in);
	r = read_strings(jfr, &in);
	if (!r)
		r = read_element(jfr, &in, 0);
	if (r == -ENOMEM)
		return weft__fail(err, r, "out of memory");
	return r || in.bad ? weft__fail(err, -WEFT_E_FORMAT, "the classes of the chunk are damaged") : 0;
}

int weft__jfr_chunk(struct weft__jfr *jfr, struct weft_error *err)
{
	int r;

	forget(jfr);
	if (jfr->at == jfr->n)
		return 0;
	r = read_header(jfr, err);
	if (!r)
		r = read_metadata(jfr, err);
	if (!r)
		r = weft__jfr_pools(jfr, err);
	return r ? r : 1;
}
