/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/tables.h"

#include <string.h>

#define FLAG_0 0
#define FLAG_KEY WEFT__COLUMN_KEY
#define FLAG_END WEFT__COLUMN_END
#define C(NAME, name, type, flag, unit, meaning, absent)                                                               \
	{#name, WEFT__##type, FLAG_##flag, unit, meaning, absent, WEFT__FORM_NONE, "", ""},
#define E(TABLE)                                                                                                       \
	static const struct weft__column columns_##TABLE[] = {WEFT__COLUMNS_##TABLE(C)};                               \
	_Static_assert(sizeof(columns_##TABLE) / sizeof(columns_##TABLE[0]) <= WEFT__COLUMNS_MAX, "a mask has room");
WEFT__EACH_TABLE(E)
#undef C
#define F(NAME, type, unit) TYPE_##NAME = WEFT__##type,
enum { WEFT__FORMS(F) };
#undef F
#define F(NAME, type, unit) static const char unit_##NAME[] __attribute__((unused)) = unit;
WEFT__FORMS(F)
#undef F
#define C(NAME, name, form, json, title, meaning, absent)                                                              \
	{#name, (enum weft__column_type)TYPE_##form, 0, unit_##form, meaning, absent, WEFT__FORM_##form, json, title},
WEFT__EACH_SUMMARY(E)
#undef C
#undef E

const struct weft__table weft__tables[WEFT__N_TABLES] = {
#define T(NAME, name, meaning) {#name, meaning, columns_##NAME, sizeof(columns_##NAME) / sizeof(columns_##NAME[0])},
	WEFT__TABLES(T) WEFT__SUMMARIES(T)
#undef T
};

enum weft__table_id weft__tables_find(const char *name)
{
	size_t i;

	for (i = 0; i < WEFT__N_TABLES && strcmp(weft__tables[i].name, name) != 0;)
		i++;
	return (enum weft__table_id)i;
}
