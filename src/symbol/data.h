/* SPDX-License-Identifier: Apache-2.0 */
/* Names of variables, such as locks, by their addresses. CALLER. */
#ifndef WEFT_SYMBOL_DATA_H
#define WEFT_SYMBOL_DATA_H

#include "symbol/symbol.h"
#include "symbol/texts.h"

struct weft__data_place {
	uint64_t address;
	const char *name; /* raw, a text of `texts`; NULL: not known */
	uint64_t offset;  /* of the address in the variable */
};

/* Names those of the places, which are in order of address, that lie in variables of the module: by the symbols of
 * its file, when that is of the recorded build, or else of its debug file. 0 or -ENOMEM. */
int weft__data_name(const struct weft__symbolizer_opts *opts, const struct weft__symbol_module *module,
		    struct weft__data_place *places, size_t n, struct weft__texts *texts);

#endif
