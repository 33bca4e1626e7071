/* SPDX-License-Identifier: Apache-2.0 */
/* serial: samples are waited for */
/* Another library of the process that publishes its contexts by itself, as OTEP 4719 and OTEP 4947 have it. */
#include <dlfcn.h>
#include <sys/mman.h>

#include "record/wait/context.h"
#include "samples.h"

#if defined(__x86_64__)
#define TLS_DIALECT "-mtls-dialect=gnu2"
#else
#define TLS_DIALECT ""
#endif

struct header {
	char signature[8];
	uint32_t version, payload_bytes;
	uint64_t published_ns, payload;
};

/* resource {service.instance.id: "theirs"}, attributes {threadlocal.attribute_key_map: ["a",
 * "datadog.local_root_span_id"]} */
static const char message[] = "\x0a\x21"
			      "\x0a\x1f\x0a\x13service.instance.id\x12\x08\x0a\x06theirs"
			      "\x12\x46\x0a\x1dthreadlocal.attribute_key_map\x12\x25\x2a\x23"
			      "\x0a\x03\x0a\x01"
			      "a"
			      "\x0a\x1c\x0a\x1a"
			      "datadog.local_root_span_id";

static void *publish_theirs(void)
{
	int fd = memfd_create("OTEL_CTX", MFD_CLOEXEC);
	struct header *header = MAP_FAILED;

	if (fd >= 0 && ftruncate(fd, 4096) == 0)
		header = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	if (fd >= 0)
		close(fd);
	if (!CHECK(header != MAP_FAILED))
		return NULL;
	memcpy(header + 1, message, sizeof(message) - 1);
	*header = (struct header){"OTEL_CTX", 2, sizeof(message) - 1, 1, (uint64_t)(uintptr_t)(header + 1)};
	return header;
}

static struct weft__otel_record theirs = {
	.trace = {1},
	.span = {0, 0, 0, 0, 0, 0, 0, 6},
	.valid = 1,
	.attrs_bytes = 3 + 18,
	.attrs = "\x00\x01"
		 "x"
		 "\x01\x10"
		 "00000000000000aB",
};

struct seen {
	uint64_t contexts, roots;
	char runtime_id[64], context[64];
};

static void see(const struct weft_segment *seg, const struct weft_event_view *ev, void *data)
{
	const char *id = weft_segment_fact(seg, "runtime.id"), *context = weft_segment_fact(seg, "otel.context");
	struct seen *seen = data;

	snprintf(seen->runtime_id, sizeof(seen->runtime_id), "%s", id ? id : "");
	snprintf(seen->context, sizeof(seen->context), "%s", context ? context : "");
	if (ev->kind != WEFT_KIND_CONTEXT || ev->fields[2] != 6)
		return;
	CHECK(ev->fields[0] == UINT64_C(1) << 56);
	seen->contexts++;
	seen->roots += ev->fields[3] == 0xab;
}

static struct seen end(struct weft_recorder *rec)
{
	struct seen seen = {0};
	struct tally t;

	CHECK_EQ(weft_recorder_close(rec, NULL), 0);
	tally_init(&t, 0);
	t.each = see;
	t.data = &seen;
	tally_dir(&t, session_dir);
	tally_fini(&t);
	session_remove_dir();
	return seen;
}

TEST(what_another_library_published_before_stays_the_only_one)
{
	void *at = publish_theirs();
	struct weft_context context = {.span = 3, .trace_lo = 4, .root = 5};
	struct weft_recorder *rec = session_start(NULL);
	struct seen seen;

	REQUIRE(at && rec);
	weft_context_set(&context);
	CHECK_EQ(otel_thread_ctx_v1->attrs_bytes, 0); /* whose keys mean something else in their map */
	CHECK_EQ(otel_thread_ctx_v1->span[7], 3);
	weft_context_clear();
	seen = end(rec);
	CHECK_STR(seen.runtime_id, "theirs");
	CHECK_STR(seen.context, "another library's");
	munmap(at, 4096);
}

TEST(without_another_the_runtime_id_is_new_each_time)
{
	struct seen first, next;

	struct weft_recorder *rec = session_start(NULL);
	REQUIRE(rec);
	weft_park(0);
	first = end(rec);
	rec = session_start(NULL);
	REQUIRE(rec);
	weft_park(0);
	next = end(rec);
	CHECK_EQ(strlen(first.runtime_id), 36);
	CHECK_EQ(first.runtime_id[14], '4');
	CHECK(strcmp(first.runtime_id, next.runtime_id) != 0);
	CHECK_STR(next.context, "published");
}

TEST(a_sample_has_the_local_root_span_of_a_tracer)
{
	struct weft__otel_record *before = otel_thread_ctx_v1;
	struct weft_recorder *rec;
	struct seen seen;
	void *at;

	SKIP_UNDER_TSAN();
	at = publish_theirs();
	rec = samples_start(WEFT_ENGINE_TIMER, 250);
	REQUIRE(at && rec);
	otel_thread_ctx_v1 = &theirs;
	CHECK(samples_burn_for(5));
	otel_thread_ctx_v1 = before;
	seen = end(rec);
	munmap(at, 4096);
	CHECK(seen.contexts > 0);
	CHECK_EQ(seen.roots, seen.contexts);
}

TEST(a_tracer_that_came_later_is_found_by_its_records)
{
	struct weft__otel_record *before = otel_thread_ctx_v1;
	struct weft_recorder *rec;
	struct seen seen;
	void *at;

	SKIP_UNDER_TSAN();
	rec = samples_start(WEFT_ENGINE_TIMER, 250);
	at = publish_theirs();
	REQUIRE(at && rec);
	CHECK_EQ(weft__otel_root_key, 0);
	otel_thread_ctx_v1 = &theirs;
	CHECK(WAIT_FOR((samples_burn(5 * MS), __atomic_load_n(&weft__otel_root_key, __ATOMIC_RELAXED) == 2)));
	CHECK(samples_burn_for(20));
	otel_thread_ctx_v1 = before;
	seen = end(rec);
	munmap(at, 4096);
	CHECK(seen.roots > 0);
	CHECK_STR(seen.context, "published");
	CHECK(strcmp(seen.runtime_id, "theirs") != 0);
}

/* A library that has a variable of the same name for itself. */
static const char library[] = "struct record;\n"
			      "__attribute__((visibility(\"default\"))) __thread struct record *otel_thread_ctx_v1;\n"
			      "__attribute__((visibility(\"default\"))) void attach(struct record *record);\n"
			      "void attach(struct record *record) { otel_thread_ctx_v1 = record; }\n";

static void *build_library(void (**attach)(struct weft__otel_record *))
{
	char path[128], command[512];
	void *handle, *symbol;
	FILE *file;

	snprintf(path, sizeof(path), "%s/tracer.c", session_dir);
	file = fopen(path, "we");
	if (!file)
		return NULL;
	fputs(library, file);
	fclose(file);
	snprintf(command, sizeof(command),
		 "cc -shared -fPIC -O1 -Wl,-Bsymbolic %s -o '%s/libtracer.so' '%s' 2>/dev/null", TLS_DIALECT,
		 session_dir, path);
	if (system(command) != 0)
		return NULL;
	snprintf(path, sizeof(path), "%s/libtracer.so", session_dir);
	handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	symbol = handle ? dlsym(handle, "attach") : NULL;
	memcpy(attach, &symbol, sizeof(symbol));
	return symbol ? handle : NULL;
}

TEST(a_tracer_that_keeps_its_variable_to_itself_is_found)
{
	void (*attach)(struct weft__otel_record *) = NULL;
	struct weft_recorder *rec;
	struct seen seen;

	SKIP_UNDER_TSAN();
	rec = samples_start(WEFT_ENGINE_TIMER, 250);
	REQUIRE(rec);
	if (!build_library(&attach)) {
		end(rec);
		SKIP("no compiler for a library with thread-local variables");
	}
	attach(&theirs);
	CHECK(otel_thread_ctx_v1 != &theirs);
	CHECK(WAIT_FOR((samples_burn(5 * MS), __atomic_load_n(&weft__otel_n_others, __ATOMIC_ACQUIRE) > 0)));
	CHECK(samples_burn_for(10));
	attach(NULL);
	CHECK(samples_burn_for(3));
	seen = end(rec);
	CHECK(seen.contexts > 0);
}
