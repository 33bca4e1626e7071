/* SPDX-License-Identifier: Apache-2.0 */
/* From a row of call frame information to the rule that the walk follows. HOT. */
#ifndef WEFT_UNWIND_ROW_H
#define WEFT_UNWIND_ROW_H

#include "unwind/table.h"

#define WEFT__SPECIAL_MAX 2048

union weft__special_room {
	struct weft__special special;
	uint8_t bytes[WEFT__SPECIAL_MAX];
};

/* What a function keeps for its caller, in the order of a rule's `saved`. */
extern const uint8_t weft__saved_regs[ARCH_SAVED];

/* The rule of a row; of one that is special the kind only. */
void weft__row_rule(const struct cfi_row *row, struct weft__rule *rule);
/* The special of a row, all of its bytes; `section` is where the expressions are. Negative: it is too large. */
int weft__row_special(const struct cfi_row *row, const uint8_t *section, union weft__special_room *room);

#endif
