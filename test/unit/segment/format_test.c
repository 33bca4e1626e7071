/* SPDX-License-Identifier: Apache-2.0 */
/* docs/FORMAT.md and src/segment/format.h say the same. */
#include "segment/format.h"

#include <stdlib.h>

#include "weft/recorder.h"
#include "weft/segment.h"
#include "weft_test.h"

static char document[1 << 16];

static int load(void)
{
	const char *source = getenv("WEFT_SOURCE");
	char path[4096];
	FILE *file;
	size_t n;

	snprintf(path, sizeof(path), "%s/docs/FORMAT.md", source ? source : ".");
	file = fopen(path, "re");
	if (!file)
		return 0;
	n = fread(document, 1, sizeof(document) - 1, file);
	document[n] = 0;
	for (char *at = strchr(document, '\n'); at; at = strchr(at, '\n')) /* where lines end does not matter */
		*at = ' ';
	fclose(file);
	return n > 0;
}

/* A row of a table: "| at | type | text". */
static const char *row(const char *section, int at, const char *type, const char *text)
{
	char line[200];
	const char *begin = strstr(document, section);

	snprintf(line, sizeof(line), "| %d | %s | %s", at, type, text);
	return begin ? strstr(begin, line) : NULL;
}

TEST(offsets_are_those_of_the_document)
{
	if (!load())
		SKIP("docs/FORMAT.md is not found: set WEFT_SOURCE");
	CHECK(row("## Header", 0, "8 bytes", "`" SEG_MAGIC "`") != NULL);
	CHECK(row("## Header", SEG_VERSION_AT, "u16", "version: 1") != NULL);
	CHECK(row("## Header", SEG_HEADER_BYTES_AT, "u16", "bytes of this header: 64") != NULL);
	CHECK(row("## Header", SEG_FLAGS_AT, "u32", "flags: bit 0") != NULL);
	CHECK(row("## Header", SEG_RECORDING_AT, "16 bytes", "recording id") != NULL);
	CHECK(row("## Header", SEG_SEQUENCE_AT, "u64", "number of the segment") != NULL);
	CHECK(row("## Header", SEG_MONO_AT, "u64", "CLOCK_MONOTONIC") != NULL);
	CHECK(row("## Header", SEG_REAL_AT, "u64", "CLOCK_REALTIME") != NULL);
	CHECK(row("## Header", SEG_HASH_AT, "u64", "XXH64 (seed 0) of bytes 0 to 55") != NULL);
	CHECK(row("## Block header", 0, "4 bytes", "`" SEG_BLOCK_MAGIC "`") != NULL);
	CHECK(row("## Block header", BLOCK_TYPE_AT, "u16", "type: 1 definitions, 2 events, 3 index") != NULL);
	CHECK(row("## Block header", BLOCK_FLAGS_AT, "u16", "flags: bit 0") != NULL);
	CHECK(row("## Block header", BLOCK_LENGTH_AT, "u32", "bytes of payload") != NULL);
	CHECK(row("## Block header", BLOCK_COUNT_AT, "u32", "number of events (at most 262,144)") != NULL);
	CHECK(row("## Block header", BLOCK_FIRST_AT, "u64", "time of the first event") != NULL);
	CHECK(row("## Block header", BLOCK_LAST_AT, "u64", "time of the last event") != NULL);
	CHECK(row("## Block header", BLOCK_HASH_AT, "u64", "XXH64 (seed 0) of bytes 0 to 31") != NULL);
	CHECK(row("## Index", 0, "8 bytes", "`" SEG_END_MAGIC "`") != NULL);
	CHECK(row("## Index", TRAILER_INDEX_AT, "u64", "offset of the index block") != NULL);
	CHECK(row("## Index", TRAILER_HASH_AT, "u64", "XXH64 (seed 0) of bytes 0 to 15") != NULL);
}

TEST(structs_of_the_format_have_their_sizes_and_limits)
{
	CHECK_EQ(SEG_HEADER_BYTES, 64);
	CHECK_EQ(BLOCK_HEADER_BYTES, 40);
	CHECK_EQ(TRAILER_BYTES, 24);
	CHECK_EQ(SEG_VERSION, 1);
	CHECK_EQ(BLOCK_DEFS, 1);
	CHECK_EQ(BLOCK_EVENTS, 2);
	CHECK_EQ(BLOCK_INDEX, 3);
	CHECK_EQ(BLOCK_EVENTS_MAX, 262144);
	CHECK_EQ(BLOCK_PAYLOAD_MAX, 32 * 1024 * 1024);
	CHECK_EQ(BODY_MAX, 16 * 1024 * 1024);
	CHECK_EQ(DEFS_MAX, 16 * 1024 * 1024);
	CHECK_EQ(SYMBOLS_MAX, 256);
	CHECK_EQ(DICT_MAX, 256);
	CHECK_EQ(CLASS_MAX, 251);
	CHECK_EQ(QUANTUM_MAX, 1000000000);
	CHECK_EQ(WEFT_FIELDS_MAX, 14);
	CHECK_EQ(RECORDS_MAX, 1048576);
	CHECK_EQ(KIND_RECORDS_MAX, 8192);
	CHECK_EQ(FACT_RECORDS_MAX, 4096);
	CHECK_EQ(MODULE_RECORDS_MAX, 65536);
	CHECK_EQ(STACK_FRAMES_MAX, 16777216);
	CHECK_EQ(SYMBOL_FRAMES_MAX, 4194304);
	CHECK_EQ(TEXT_BYTES_MAX, 64 * 1024 * 1024);
	CHECK_EQ(class_base(CLASS_MAX) + (UINT64_C(1) << class_bits(CLASS_MAX)) - 1, UINT64_MAX);
}

TEST(tags_types_and_reasons_are_those_of_the_document)
{
	static const char *const records[] = {"string", "location", "runtime", "worker", "thread", "kind",  "clock",
					      "loss",   "fact",     "module",  "stack",  "name",   "symbol"};
	char line[100];
	size_t i;

	if (!load())
		SKIP("docs/FORMAT.md is not found: set WEFT_SOURCE");
	CHECK_EQ(DEF_STRING, 1);
	CHECK_EQ(DEF_FACT, 9);
	CHECK_EQ(DEF_MODULE, 10);
	CHECK_EQ(DEF_STACK, 11);
	CHECK_EQ(DEF_NAME, 12);
	CHECK_EQ(DEF_SYMBOL, 13);
	for (i = 0; i < sizeof(records) / sizeof(records[0]); i++) {
		snprintf(line, sizeof(line), "| %zu | %s |", i + 1, records[i]);
		CHECK(strstr(document, line) != NULL);
	}
	CHECK(strstr(document,
		     "1 u64, 2 i64, 3 f64 (bits), 4 bool, 5 string id, 6 task id, 7 worker id, 8 location id, "
		     "9 stack id (0: none)") != NULL);
	CHECK_EQ(WEFT_TYPE_U64, 1);
	CHECK_EQ(WEFT_TYPE_LOCATION, 8);
	CHECK_EQ(WEFT_TYPE_STACK, 9);
	CHECK_EQ(WEFT_LOSS_RING_FULL, 1);
	CHECK_EQ(WEFT_LOSS_DISK_FULL, 5);
	CHECK_EQ(WEFT_LOSS_SAMPLE, 6);
	CHECK_EQ(WEFT_LOSS_UNCOVERED, 7);
	CHECK_EQ(WEFT_LOSS_POLL_CAP, 8);
	CHECK_EQ(WEFT_LOSS_SWITCH, 9);
	CHECK_EQ(WEFT_LOSS_DELETED, 10);
	CHECK_EQ(WEFT_LOSS_SIGNAL, 11);
#define X(NAME, number, name, ...)                                                                                     \
	snprintf(line, sizeof(line), "| %d | %s |", number, name);                                                     \
	CHECK(strstr(document, line) != NULL);
	WEFT_LOSSES(X)
#undef X
#define X(NAME, number, name, ...)                                                                                     \
	snprintf(line, sizeof(line), "| %d | %s |", number, name);                                                     \
	CHECK(strstr(document, line) != NULL);
	WEFT_KINDS(X, WEFT_KIND_NONE, WEFT_KIND_NONE)
#undef X
	CHECK_EQ(WEFT_KIND_USER, 64);
}

TEST(modules_stacks_and_samples_are_those_of_the_document)
{
	static const struct {
		uint32_t flag;
		const char *name;
	} flags[] = {
		{WEFT_STACK_COMPLETE, "complete"}, {WEFT_STACK_CUT, "cut"},       {WEFT_STACK_LOST, "lost"},
		{WEFT_STACK_FP, "frame pointers"}, {WEFT_STACK_SIGNAL, "signal"}, {WEFT_STACK_NO_CODE, "no code"},
		{WEFT_STACK_KERNEL, "kernel"},     {WEFT_STACK_EARLY, "early"},
	};
	static const char *const facts[] = {"sample.engine", "sample.hz",        "sample.event",     "sample.kernel",
					    "sample.why",    "sample.period_ns", "degraded.sampling"};
	char line[100];
	size_t i;

	if (!load())
		SKIP("docs/FORMAT.md is not found: set WEFT_SOURCE");
	for (i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		snprintf(line, sizeof(line), "| %zu | %u | %s |", i, flags[i].flag, flags[i].name);
		CHECK(strstr(document, line) != NULL);
	}
	for (i = 0; i < sizeof(facts) / sizeof(facts[0]); i++) {
		snprintf(line, sizeof(line), "`%s`", facts[i]);
		CHECK(strstr(document, line) != NULL);
	}
	CHECK(strstr(document, "Kinds: 1 file (the program or a library), 2 vdso, 3 kernel, 4 code that was made") !=
	      NULL);
	CHECK_EQ(WEFT_MODULE_FILE, 1);
	CHECK_EQ(WEFT_MODULE_VDSO, 2);
	CHECK_EQ(WEFT_MODULE_KERNEL, 3);
	CHECK_EQ(WEFT_MODULE_CODE, 4);
	CHECK(strstr(document, "bytes of build id (at most 32)") != NULL);
	CHECK_EQ(WEFT_BUILD_ID_MAX, 32);
	CHECK(strstr(document, "*engine* what took the sample: 1 timer, 2 perf") != NULL);
	CHECK_EQ(WEFT_ENGINE_TIMER, 1);
	CHECK_EQ(WEFT_ENGINE_PERF, 2);
}
