/* SPDX-License-Identifier: Apache-2.0 */
/* OTLP profiles: ExportProfilesServiceRequest of opentelemetry-proto v1.10.0 and v1.11.0, package
 * opentelemetry.proto.profiles.v1development, status alpha. Field numbers may change with the next version, so they
 * are in this file only. A profile has one sample type (otlp.c); all share the dictionary (otlp_dictionary.c), whose
 * tables have their zero value first. Attributes and links are numbered as samples need them, so the dictionary comes
 * last. Context: CALLER. */
#ifndef WEFT_EXPORT_OTLP_H
#define WEFT_EXPORT_OTLP_H

#include "export/aggregate.h"
#include "export/proto.h"
#include "export/string_table.h"

enum { REQUEST_RESOURCE_PROFILES = 1, REQUEST_DICTIONARY = 2 };
enum { RESOURCE_PROFILES_RESOURCE = 1, RESOURCE_PROFILES_SCOPE_PROFILES = 2 };
enum { SCOPE_PROFILES_SCOPE = 1, SCOPE_PROFILES_PROFILES = 2 };
enum { RESOURCE_ATTRIBUTES = 1, SCOPE_NAME = 1, SCOPE_VERSION = 2 };
enum { KEY_VALUE_KEY = 1, KEY_VALUE_VALUE = 2 };
enum { ANY_STRING = 1, ANY_INT = 3, ANY_ARRAY = 5, ARRAY_VALUES = 1 };
enum {
	PROFILE_SAMPLE_TYPE = 1,
	PROFILE_SAMPLES = 2,
	PROFILE_TIME_UNIX_NANO = 3,
	PROFILE_DURATION_NANO = 4,
	PROFILE_PERIOD_TYPE = 5,
	PROFILE_PERIOD = 6,
	PROFILE_PROFILE_ID = 7,
	PROFILE_ATTRIBUTE_INDICES = 11,
};
enum { VALUE_TYPE_TYPE = 1, VALUE_TYPE_UNIT = 2 };
enum { SAMPLE_STACK_INDEX = 1, SAMPLE_ATTRIBUTE_INDICES = 2, SAMPLE_LINK_INDEX = 3, SAMPLE_VALUES = 4 };
enum {
	DICTIONARY_MAPPING = 1,
	DICTIONARY_LOCATION = 2,
	DICTIONARY_FUNCTION = 3,
	DICTIONARY_LINK = 4,
	DICTIONARY_STRING = 5,
	DICTIONARY_ATTRIBUTE = 6,
	DICTIONARY_STACK = 7,
};
enum {
	MAPPING_START = 1,
	MAPPING_LIMIT = 2,
	MAPPING_OFFSET = 3,
	MAPPING_FILENAME = 4,
	MAPPING_ATTRIBUTE_INDICES = 5,
};
enum { LOCATION_MAPPING_INDEX = 1, LOCATION_ADDRESS = 2, LOCATION_LINES = 3, LOCATION_ATTRIBUTE_INDICES = 4 };
enum { LINE_FUNCTION_INDEX = 1, LINE_LINE = 2 };
enum { FUNCTION_NAME = 1, FUNCTION_SYSTEM_NAME = 2, FUNCTION_FILENAME = 3 };
enum { LINK_TRACE_ID = 1, LINK_SPAN_ID = 2 };
enum { ATTRIBUTE_KEY = 1, ATTRIBUTE_VALUE = 2 };
enum { STACK_LOCATION_INDICES = 1 };

enum attribute_kind { ATTRIBUTE_TEXT, ATTRIBUTE_INT, ATTRIBUTE_NOTES };

#define SAMPLE_ATTRIBUTES_MAX 64u

struct otlp {
	const struct weft__aggregate *agg;
	struct weft__buf *out;
	struct weft__strings strings;
	struct weft__keys attributes, links;
	uint32_t indices[SAMPLE_ATTRIBUTES_MAX]; /* of attributes, for the message that is being written */
	size_t n_indices;
	bool oom;
};

/* One more attribute of the message that is being written; `value` is a text's number, or itself. */
void weft__otlp_attribute(struct otlp *o, uint32_t key, enum attribute_kind kind, uint64_t value);
/* The same, unless the value is 0. */
void weft__otlp_text(struct otlp *o, const char *key, uint32_t value);
void weft__otlp_number(struct otlp *o, const char *key, uint64_t value);
/* Writes and forgets those that were added. */
void weft__otlp_indices(struct otlp *o, uint32_t field);
/* The number of a span in the table of links; 0: there is none. */
uint32_t weft__otlp_link(struct otlp *o, const struct weft__row_labels *labels);
/* The tables, after everything that refers to them. */
void weft__otlp_dictionary(struct otlp *o);

#endif
