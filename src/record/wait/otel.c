/* SPDX-License-Identifier: Apache-2.0 */
/* The process context of OTEP 4719: who this process is, for profilers that look at it from outside. CALLER, under
 * the lock of labels.c.
 *
 * A mapping that is found by its name (/memfd:OTEL_CTX, or the name of anonymous memory) begins with a header that
 * points to a protobuf message, ProcessContext {Resource resource = 1; repeated KeyValue attributes = 2}. A reader
 * takes a copy and looks whether `published_ns` is what it was and not 0. A process has one: where another library
 * published it before, that one stays. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/buf.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/place.h"
#include "record/tables/tables.h"
#include "record/wait/context.h"
#include "segment/defs.h"
#include "weft/version.h"

#define OTEL_BYTES 65536 /* of the mapping: the header and two payloads, of which one is current */
#define OTEL_HALF (OTEL_BYTES / 2)
#define OTEL_VERSION 2
#define OTEL_LOOK_NS UINT64_C(5000000000) /* between two looks for the context of another library */

#ifndef PR_SET_VMA
#define PR_SET_VMA 0x53564d41
#define PR_SET_VMA_ANON_NAME 0
#endif
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8u
#endif

struct otel_header {
	char signature[8];
	uint32_t version;
	uint32_t payload_bytes;
	uint64_t published_ns; /* CLOCK_BOOTTIME; 0: it is being changed */
	uint64_t payload;      /* address */
};
_Static_assert(sizeof(struct otel_header) == 32, "as OTEP 4719 has it");

static struct {
	struct otel_header *header; /* NULL: not published */
	pid_t pid;                  /* in which it is */
	int half;                   /* that is current */
	struct weft__buf resource;  /* encoded */
	char runtime_id[40];
	const char *state;
	uint64_t looked_ns; /* COLLECTOR: for the context of another library */
} otel = {.state = "off"};

/* Fields of messages, all of them of the kind that has a length. */
enum { PB_RESOURCE = 1, PB_ATTRIBUTES = 2, PB_KEY = 1, PB_VALUE = 2, PB_STRING = 1, PB_ARRAY = 5 };
#define PB_TAG(field) ((uint8_t)((field) << 3 | 2))

static size_t varint_bytes(uint64_t v)
{
	uint8_t to[VARINT_MAX];

	return (size_t)(put_varint(to, v) - to);
}

/* A message or string of n bytes with its tag and length. */
static size_t field_bytes(size_t n)
{
	return 1 + varint_bytes(n) + n;
}

static void put_field(struct weft__buf *out, int field, size_t n)
{
	weft__buf_u8(out, PB_TAG(field));
	weft__buf_varint(out, n);
}

static void put_string(struct weft__buf *out, int field, const char *text, size_t n)
{
	put_field(out, field, n);
	weft__buf_put(out, text, n);
}

/* A KeyValue with a string, as the given field. */
static void put_attr(struct weft__buf *out, int field, const char *key, size_t key_n, const char *value)
{
	size_t n = strlen(value), any = field_bytes(n);

	put_field(out, field, field_bytes(key_n) + field_bytes(any));
	put_string(out, PB_KEY, key, key_n);
	put_field(out, PB_VALUE, any);
	put_string(out, PB_STRING, value, n);
}

static void put_key_map(struct weft__buf *out)
{
	static const char name[] = "threadlocal.attribute_key_map";
	const char *names[OTEL_KEYS_MAX];
	uint32_t i, n = weft__otel_keys(names, OTEL_KEYS_MAX);
	size_t array = 0;

	for (i = 0; i < n; i++)
		array += field_bytes(field_bytes(strlen(names[i])));
	put_field(out, PB_ATTRIBUTES, field_bytes(sizeof(name) - 1) + field_bytes(field_bytes(array)));
	put_string(out, PB_KEY, name, sizeof(name) - 1);
	put_field(out, PB_VALUE, field_bytes(array));
	put_field(out, PB_ARRAY, array);
	for (i = 0; i < n; i++) {
		put_field(out, 1, field_bytes(strlen(names[i])));
		put_string(out, PB_STRING, names[i], strlen(names[i]));
	}
}

#define PUT_ATTR(out, field, key, value) put_attr((out), (field), (key), sizeof(key) - 1, (value))

static void put_resource(struct weft__buf *out, const char *service, const char *const *labels)
{
	char host[256] = "";

	PUT_ATTR(out, 1, "service.name", service);
	PUT_ATTR(out, 1, "service.instance.id", otel.runtime_id);
	PUT_ATTR(out, 1, "telemetry.sdk.name", "weft");
	PUT_ATTR(out, 1, "telemetry.sdk.version", WEFT_VERSION_STRING);
	PUT_ATTR(out, 1, "telemetry.sdk.language", "cpp");
	if (gethostname(host, sizeof(host) - 1) == 0)
		PUT_ATTR(out, 1, "host.name", host);
	for (; labels && *labels; labels++) {
		size_t n = strcspn(*labels, "=");

		put_attr(out, 1, *labels, n, (*labels)[n] ? *labels + n + 1 : "");
	}
}

static uint64_t boot_ns(void)
{
	struct timespec ts = {0, 0};

	clock_gettime(CLOCK_BOOTTIME, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* The message goes to the half that is not current, so that a reader of the other one finds it whole. 0 or a
 * negative error. */
static int publish_payload(void)
{
	struct otel_header *header = otel.header;
	struct weft__buf out = {0};
	uint8_t *to = (uint8_t *)header + (otel.half ? sizeof(*header) : OTEL_HALF);
	uint64_t before = header->published_ns, now = boot_ns();
	int err = 0;

	put_string(&out, PB_RESOURCE, (const char *)otel.resource.bytes, otel.resource.n);
	/* The name that readers know, of which OTEP 4947 says that it is to become tls_v1. */
	PUT_ATTR(&out, PB_ATTRIBUTES, "threadlocal.schema_version", "tlsdesc_v1_dev");
	put_key_map(&out);
	if (out.oom || otel.resource.oom)
		err = -ENOMEM;
	else if (out.n > OTEL_HALF - sizeof(*header))
		err = -E2BIG;
	if (!err) {
		uint64_t signature;

		memcpy(to, out.bytes, out.n);
		memcpy(&signature, "OTEL_CTX", sizeof(signature));
		store_seq_cst(&header->published_ns, 0);
		store_seq_cst(&header->version, OTEL_VERSION);
		store_seq_cst(&header->payload_bytes, (uint32_t)out.n);
		store_seq_cst(&header->payload, (uint64_t)(uintptr_t)to);
		store_seq_cst((uint64_t *)(void *)header->signature, signature);
		store_seq_cst(&header->published_ns, now > before ? now : before + 1);
		otel.half = !otel.half;
		/* Where names of mappings are not known the call fails, and is heard of all the same by those who
		 * trace it. */
		prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, header, OTEL_BYTES, "OTEL_CTX");
	}
	weft__buf_free(&out);
	return err;
}

static void *map_named(void)
{
	int fd = memfd_create("OTEL_CTX", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
	void *at = MAP_FAILED;
	struct rlimit limit;

	if (fd < 0)
		fd = memfd_create("OTEL_CTX", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	/* Beyond the limit the kernel would end the program with a signal. */
	if (fd >= 0 && getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur >= OTEL_BYTES &&
	    ftruncate(fd, OTEL_BYTES) == 0)
		at = mmap(NULL, OTEL_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	if (fd >= 0)
		close(fd);
	if (at == MAP_FAILED)
		at = mmap(NULL, OTEL_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return at;
}

/* RFC 9562, version 4. */
static void make_runtime_id(void)
{
	uint64_t words[2] = {weft__clock_real(), (uint64_t)getpid() << 32 ^ weft__clock_mono()};
	uint8_t id[16];

	memcpy(id, words, 16);
	(void)!getrandom(id, 16, GRND_NONBLOCK);
	id[6] = (uint8_t)((id[6] & 0x0f) | 0x40);
	id[8] = (uint8_t)((id[8] & 0x3f) | 0x80);
	snprintf(otel.runtime_id, sizeof(otel.runtime_id),
		 "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", id[0], id[1], id[2], id[3],
		 id[4], id[5], id[6], id[7], id[8], id[9], id[10], id[11], id[12], id[13], id[14], id[15]);
}

/* Reading, from this process, what another library has published: memory that may go at any time. */
static int read_self(uint64_t from, void *to, size_t n)
{
	struct iovec local = {to, n}, remote = {(void *)(uintptr_t)from, n};

	return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == (ssize_t)n;
}

/* The next field that has a length; others are skipped. 0 at the end. */
static int next_field(struct weft__in *in, uint32_t *field, struct weft__in *body)
{
	while (in_left(in)) {
		uint64_t tag = in_varint(in), n;
		const uint8_t *at;

		switch (tag & 7) {
		case 0:
			in_varint(in);
			continue;
		case 1:
			in_bytes(in, 8);
			continue;
		case 5:
			in_bytes(in, 4);
			continue;
		case 2:
			n = in_varint(in);
			at = in_bytes(in, n);
			if (!at || in->bad)
				return 0;
			*field = (uint32_t)(tag >> 3);
			*body = weft__in(at, n);
			return 1;
		default:
			return 0;
		}
	}
	return 0;
}

static int is_text(const struct weft__in *in, const char *text)
{
	return in_left(in) == strlen(text) && !memcmp(in->p, text, in_left(in));
}

/* A KeyValue: its key, and what its value holds, whatever that is. */
static void read_attr(struct weft__in attr, struct weft__in *key, struct weft__in *value)
{
	struct weft__in part;
	uint32_t field;

	*key = *value = weft__in(NULL, 0);
	while (next_field(&attr, &field, &part)) {
		if (field == PB_KEY)
			*key = part;
		if (field == PB_VALUE && !next_field(&part, &field, value))
			*value = weft__in(NULL, 0);
	}
}

static void learn_keys(struct weft__in array)
{
	struct weft__in any, text;
	uint32_t field, i;

	for (i = 0; next_field(&array, &field, &any); i++)
		if (next_field(&any, &field, &text) && is_text(&text, "datadog.local_root_span_id"))
			store_relaxed(&weft__otel_root_key, i + 1);
}

/* `id`: its runtime id is ours. */
static void learn(const uint8_t *bytes, size_t n, int id)
{
	struct weft__in in = weft__in(bytes, n), part, attr, key, value;
	uint32_t field, inner;

	while (next_field(&in, &field, &part)) {
		if (field == PB_RESOURCE) {
			while (next_field(&part, &inner, &attr)) {
				read_attr(attr, &key, &value);
				if (id && inner == 1 && is_text(&key, "service.instance.id") &&
				    in_left(&value) < sizeof(otel.runtime_id))
					snprintf(otel.runtime_id, sizeof(otel.runtime_id), "%.*s", (int)in_left(&value),
						 (const char *)value.p);
			}
		} else if (field == PB_ATTRIBUTES) {
			read_attr(part, &key, &value);
			if (is_text(&key, "threadlocal.attribute_key_map"))
				learn_keys(value);
		}
	}
}

/* Whether there is a process context at this address that is not being changed; then what it says is learned. */
static int learn_at(uint64_t at, int id)
{
	static uint8_t payload[OTEL_BYTES] LARGE_TABLE;
	struct otel_header before, after;

	if (!read_self(at, &before, sizeof(before)) || memcmp(before.signature, "OTEL_CTX", 8) ||
	    before.version != OTEL_VERSION)
		return 0;
	if (before.published_ns && before.payload_bytes <= sizeof(payload) &&
	    read_self(before.payload, payload, before.payload_bytes) && read_self(at, &after, sizeof(after)) &&
	    after.published_ns == before.published_ns)
		learn(payload, before.payload_bytes, id);
	return 1;
}

/* A line of the list of mappings. */
static int learn_line(const char *line, int id)
{
	uint64_t at = 0;

	if (!strstr(line, "/memfd:OTEL_CTX") && !strstr(line, "[anon_shmem:OTEL_CTX]") &&
	    !strstr(line, "[anon:OTEL_CTX]"))
		return 0;
	return sscanf(line, "%" SCNx64, &at) == 1 && at != (uint64_t)(uintptr_t)otel.header && learn_at(at, id);
}

/* Whether somebody else has published one. Without a stream: see base/private_fds.h. */
static int find_other(int id)
{
	static char text[16384]; /* more than a line may have */
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC), found = 0;
	size_t n = 0;
	ssize_t got;

	while (fd >= 0 && !found && (got = read(fd, text + n, sizeof(text) - 1 - n)) > 0) {
		char *line = text, *end;

		text[n + (size_t)got] = 0;
		for (; !found && (end = strchr(line, '\n')); line = end + 1) {
			*end = 0;
			found = learn_line(line, id);
		}
		n = strlen(line);
		memmove(text, line, n);
	}
	if (fd >= 0)
		close(fd);
	return found;
}

/* Publishes the process context, or finds the one that is there. The runtime id is new each time, and another's when
 * that one published it. */
static int otel_open(const struct weft_recorder_opts *opts, struct weft_error *err)
{
	void *at;

	(void)err;
	weft__unwinding.looked = weft__otel_find;
	weft__otel_lock();
	make_runtime_id();
	store_relaxed(&weft__otel_root_key, 0u);
	if (find_other(1)) {
		otel.state = "another library's";
	} else if ((at = map_named()) == MAP_FAILED) {
		otel.state = "no memory";
	} else {
		madvise(at, OTEL_BYTES, MADV_DONTFORK);
		otel.header = at;
		otel.pid = getpid();
		otel.half = 1;
		otel.state = "published";
		weft__buf_clear(&otel.resource);
		put_resource(&otel.resource, opts->name, opts->labels);
		if (publish_payload() < 0) {
			munmap(at, OTEL_BYTES);
			otel.header = NULL;
			otel.state = "too large, or no memory";
		}
	}
	store_relaxed(&weft__otel_keys_ours, (uint32_t)(otel.header != NULL));
	weft__otel_unlock();
	return 0;
}

static uint64_t otel_due(const struct weft__turn *turn)
{
	return turn->awake && load_relaxed(&weft__otel_root_wanted) ? otel.looked_ns + OTEL_LOOK_NS : UINT64_MAX;
}

/* Looks for the process context of a tracer that came later, when its records are there. */
static int otel_turn(const struct weft__turn *turn)
{
	otel.looked_ns = turn->now_ns;
	store_relaxed(&weft__otel_root_wanted, 0u);
	weft__otel_lock();
	find_other(0);
	weft__otel_unlock();
	return SOURCE_NOTHING;
}

void weft__otel_update(void)
{
	/* In a child that was made behind the fork handlers' back the mapping is not there. */
	if (otel.header && otel.pid == getpid())
		publish_payload();
}

static void otel_close(struct weft__collector *c)
{
	(void)c;
	weft__otel_lock();
	if (otel.header && otel.pid == getpid())
		munmap(otel.header, OTEL_BYTES);
	otel.header = NULL;
	otel.state = "off";
	store_relaxed(&weft__otel_keys_ours, 0u);
	weft__buf_free(&otel.resource);
	weft__otel_unlock();
}

/* In the child the mapping is not there. */
static void otel_fork(enum weft__source_fork when, struct weft__collector *c)
{
	if (when == SOURCE_LOCK)
		weft__otel_lock();
	if (when == SOURCE_UNLOCK)
		weft__otel_unlock();
	if (when != SOURCE_CHILD || !c)
		return;
	otel.header = NULL;
	otel.state = "off";
	store_relaxed(&weft__otel_keys_ours, 0u);
}

static void otel_facts(struct weft__defs *defs)
{
	weft__defs_fact(defs, "runtime.id", otel.runtime_id);
	weft__defs_fact(defs, "otel.context", otel.state);
}

const struct weft__source weft__context_source = {
	.name = "context",
	.what = "contexts of other tracers",
	.open = otel_open,
	.close = otel_close,
	.fork = otel_fork,
	.facts = otel_facts,
	.due = otel_due,
	.turn = otel_turn,
};
