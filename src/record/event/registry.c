/* SPDX-License-Identifier: Apache-2.0 */
#include "record/event/registry.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/atomic.h"
#include "base/error.h"
#include "base/intern.h"
#include "base/late.h"
#include "base/place.h"
#include "record/ring/ring.h"
#include "weft/event.h"

#define KINDS_MAX 4096
#define TEXT_MAX 4096                  /* longer names are cut */
#define NAMES_RESERVE (DEFS_BYTES / 4) /* of the log, for all but strings and locations */

static pthread_mutex_t registry_mutex FORK_DATA = PTHREAD_MUTEX_INITIALIZER;
static struct {
	struct weft__intern strings, locations, kinds, kind_names, workers, modules;
	struct weft__defs log;          /* every record so far, */
	size_t kept_bytes;              /* and what of it is done: */
	uint32_t kept_n;                /* beyond it there is a definition that may fail yet */
	uint64_t names_refused;         /* strings, locations and kinds for which there was no room */
	uint32_t reserved;              /* ids of strings that are defined later, or never */
	uint8_t kind_fields[KINDS_MAX]; /* plus 1 */
	struct rings_head *shared;      /* NULL: no recorder is open */
	char *shared_base;
	struct weft__own_file shared_file;
} registry = {.shared_file = {.fd = -1}};

void weft__registry_lock(void)
{
	pthread_mutex_lock(&registry_mutex);
}

void weft__registry_unlock(void)
{
	pthread_mutex_unlock(&registry_mutex);
}

/* Puts the log's bytes from the shared end on into shared memory. */
static int share_tail(void)
{
	struct rings_head *head = registry.shared;
	uint64_t used, n;

	if (!head || head->pid != (uint32_t)getpid()) /* a child's definitions are none of its parent's */
		return 0;
	used = head->defs_used;
	n = registry.log.out.n - used;
	if (n && !weft__ring_back(&registry.shared_file, registry.shared_base + head->defs_at + used,
				  head->defs_at + used, n))
		return -ENOSPC;
	memcpy(registry.shared_base + head->defs_at + used, registry.log.out.bytes + used, n);
	head->defs_count = registry.log.n;
	store_release(&head->defs_used, used + n);
	return 0;
}

static void log_keep(void)
{
	registry.kept_bytes = registry.log.out.n;
	registry.kept_n = registry.log.n;
}

/* All of them or none. */
static int ensure_builtin(void)
{
	if (registry.log.n)
		return 0;
	weft__defs_builtin_kinds(&registry.log);
	if (!weft__defs_oom(&registry.log)) {
		log_keep();
		return 0;
	}
	weft__defs_fini(&registry.log);
	return -ENOMEM;
}

/* A program may name things without end. Then the names end, and what they are names of can still be defined. */
static int log_full_but(size_t reserve)
{
	return ensure_builtin() < 0 || registry.log.out.n > DEFS_BYTES - 3 * TEXT_MAX - reserve;
}

static int log_full(void)
{
	return log_full_but(0);
}

static int log_full_of_names(void)
{
	int full = log_full_but(NAMES_RESERVE);

	registry.names_refused += (uint64_t)full;
	return full;
}

uint64_t weft__registry_refused(void)
{
	uint64_t n;

	weft__registry_lock();
	n = registry.names_refused;
	weft__registry_unlock();
	return n;
}

/* The definition after what was kept: it counts, or it was never there. */
static int log_commit(void)
{
	int err = weft__defs_oom(&registry.log) ? -ENOMEM : share_tail();

	if (err) {
		registry.log.out.n = registry.kept_bytes;
		registry.log.out.oom = 0;
		registry.log.one.oom = 0;
		registry.log.n = registry.kept_n;
	}
	log_keep();
	return err;
}

int weft__registry_share(struct rings_head *head, char *base, const struct weft__own_file *file)
{
	int err;

	weft__registry_lock();
	err = ensure_builtin();
	if (!err) {
		registry.shared = head;
		registry.shared_base = base;
		registry.shared_file = file ? *file : (struct weft__own_file){.fd = -1};
		err = share_tail();
	}
	if (err) {
		registry.shared = NULL;
		registry.shared_file.fd = -1;
	}
	weft__registry_unlock();
	return err;
}

void weft__registry_read(uint64_t *from, struct weft__defs *to)
{
	weft__registry_lock();
	if (registry.log.out.n > *from) {
		const uint8_t *bytes = registry.log.out.bytes + *from;
		size_t n = registry.log.out.n - *from;

		weft__defs_raw(to, bytes, n, weft__defs_count(bytes, n));
		*from = registry.log.out.n;
	}
	weft__registry_unlock();
}

int weft__registry_kind_fields(uint32_t kind)
{
	return kind < KINDS_MAX ? (int)load_acquire(&registry.kind_fields[kind]) - 1 : -1;
}

static size_t key_text(uint8_t *key, size_t at, const char *text)
{
	size_t n = text ? strnlen(text, TEXT_MAX - 1) : 0;

	memcpy(key + at, text ? text : "", n);
	key[at + n] = 0;
	return at + n + 1;
}

uint32_t weft_string(const char *text)
{
	uint8_t key[TEXT_MAX];
	size_t n = key_text(key, 0, text);
	uint32_t id;

	weft__registry_lock();
	id = weft__intern_get(&registry.strings, key, n);
	if (!id && registry.strings.n + registry.reserved < 65535 && !log_full_of_names()) {
		id = registry.strings.n + registry.reserved + 1;
		weft__defs_string(&registry.log, id, (const char *)key);
		if (log_commit() < 0 || weft__intern_add(&registry.strings, key, n, id) < 0)
			id = 0;
	}
	weft__registry_unlock();
	return id;
}

uint32_t weft__late_strings(uint32_t n)
{
	uint32_t first = 0;

	weft__registry_lock();
	if (registry.strings.n + registry.reserved + n <= 65535) {
		first = registry.strings.n + registry.reserved + 1;
		registry.reserved += n;
	}
	weft__registry_unlock();
	return first;
}

int weft__late_string(uint32_t id, const char *text)
{
	uint8_t key[TEXT_MAX];
	int err = -ENOSPC;

	key_text(key, 0, text);
	weft__registry_lock();
	if (!log_full_of_names()) {
		weft__defs_string(&registry.log, id, (const char *)key);
		err = log_commit();
	}
	weft__registry_unlock();
	return err;
}

uint32_t weft_location(const char *name, const char *file, uint32_t line)
{
	uint8_t key[2 * TEXT_MAX + 4];
	size_t at_file, n;
	uint32_t id;

	memcpy(key, &line, sizeof(line));
	at_file = key_text(key, sizeof(line), name);
	n = key_text(key, at_file, file);
	weft__registry_lock();
	id = weft__intern_get(&registry.locations, key, n);
	if (!id && registry.locations.n < 65535 && !log_full_of_names()) {
		id = registry.locations.n + 1;
		weft__defs_location(&registry.log, id, line, (const char *)key + sizeof(line),
				    (const char *)key + at_file);
		if (log_commit() < 0 || weft__intern_add(&registry.locations, key, n, id) < 0)
			id = 0;
	}
	weft__registry_unlock();
	return id;
}

static int fields_valid(const struct weft_field *fields, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++) {
		if (!fields[i].name || strlen(fields[i].name) > 255 ||
		    (fields[i].unit && strlen(fields[i].unit) > 63) || fields[i].type < WEFT_TYPE_U64 ||
		    fields[i].type > WEFT_TYPE_LOCATION)
			return 0;
	}
	return 1;
}

/* The record without its id, which two definitions of the same name must share to the letter. */
static int kind_describe(struct weft__defs *scratch, const char *name, const struct weft_field *fields, size_t n)
{
	memset(scratch, 0, sizeof(*scratch));
	weft__defs_kind(scratch, 0, name, fields, (uint32_t)n);
	return weft__defs_oom(scratch) ? -ENOMEM : 0;
}

/* The number of a kind, in the log and found by its description. Memory may run out after that: the next try goes on
 * here. */
static int kind_number(const char *name, const struct weft_field *fields, size_t n_fields,
		       const struct weft__buf *whole)
{
	uint32_t id = weft__intern_get(&registry.kinds, whole->bytes, whole->n);
	int err;

	if (id)
		return (int)id;
	if (weft__intern_get(&registry.kind_names, name, strlen(name)))
		return -EEXIST;
	id = WEFT_KIND_USER + registry.kinds.n;
	if (id >= KINDS_MAX || log_full()) {
		registry.names_refused++;
		return -WEFT_E_LIMIT;
	}
	weft__defs_kind(&registry.log, id, name, fields, (uint32_t)n_fields);
	err = log_commit();
	if (!err)
		err = weft__intern_add(&registry.kinds, whole->bytes, whole->n, id);
	return err ? err : (int)id;
}

static int kind_add(const char *name, const struct weft_field *fields, size_t n_fields, const struct weft__buf *whole)
{
	int id = kind_number(name, fields, n_fields, whole);
	int err;

	if (id < 0 || load_relaxed(&registry.kind_fields[id]))
		return id;
	err = weft__intern_add(&registry.kind_names, name, strlen(name), (uint32_t)id);
	if (err)
		return err;
	store_release(&registry.kind_fields[id], (uint8_t)(n_fields + 1));
	return id;
}

static int kind_fail(struct weft_error *err, int code, const char *name)
{
	if (code == -EEXIST)
		return weft__fail(err, code, "event type \"%s\" is defined with other fields; give it another name",
				  name);
	if (code == -WEFT_E_LIMIT)
		return weft__fail(err, code, "event type \"%s\": no room for more definitions (2 MiB, %d types)", name,
				  KINDS_MAX - WEFT_KIND_USER);
	return weft__fail(err, code, "event type \"%s\": %s", name, weft_strerror(code));
}

uint32_t weft_event_define(const char *name, const struct weft_field *fields, size_t n_fields, struct weft_error *err)
{
	struct weft__defs whole;
	int id;

	if (!name || !*name || strlen(name) > 255) {
		weft__fail(err, -EINVAL, "an event type needs a name of 1 to 255 bytes");
		return 0;
	}
	if (n_fields > WEFT_FIELDS_MAX || (n_fields && !fields) || !fields_valid(fields, n_fields)) {
		weft__fail(err, -EINVAL, "event type \"%s\": give up to %d fields, each with a name and a known type",
			   name, WEFT_FIELDS_MAX);
		return 0;
	}
	if (kind_describe(&whole, name, fields, n_fields) < 0) {
		weft__defs_fini(&whole);
		kind_fail(err, -ENOMEM, name);
		return 0;
	}
	weft__registry_lock();
	id = kind_add(name, fields, n_fields, &whole.out);
	weft__registry_unlock();
	weft__defs_fini(&whole);
	if (id < 0)
		kind_fail(err, id, name);
	return id < 0 ? 0 : (uint32_t)id;
}

static void runtime_name(char *to, size_t bytes, const char *name, uint32_t id)
{
	if (name && *name)
		snprintf(to, bytes, "%s", name);
	else
		snprintf(to, bytes, "runtime-%u", id);
}

static int runtime_add_locked(const struct weft_runtime_opts *opts)
{
	struct weft__runtime *runtime;
	char name[256];
	uint32_t id = weft__hot.n_runtimes;
	int err;

	if (id > RUNTIMES_MAX || log_full())
		return -WEFT_E_LIMIT;
	runtime_name(name, sizeof(name), opts->name, id);
	weft__defs_runtime(&registry.log, id, name);
	err = log_commit();
	if (err)
		return err;
	runtime = &weft__runtimes[id];
	store_relaxed(&runtime->data, opts->data);
	store_seq_cst(&runtime->worker, opts->worker);
	store_seq_cst(&runtime->queue, opts->queue);
	store_release(&weft__hot.n_runtimes, id + 1);
	return (int)id;
}

uint32_t weft_runtime_add(const struct weft_runtime_opts *opts, struct weft_error *err)
{
	static const struct weft_runtime_opts none = {.size = sizeof(none)};
	int id;

	opts = opts ? opts : &none;
	if (opts->size != sizeof(*opts)) {
		weft__fail(err, opts->size > sizeof(*opts) ? -E2BIG : -EINVAL,
			   "options of a runtime have %zu bytes, and weft %s knows %zu; use WEFT_OPTIONS_INIT",
			   opts->size, WEFT_VERSION_STRING, sizeof(*opts));
		return 0;
	}
	weft__registry_lock();
	id = runtime_add_locked(opts);
	weft__registry_unlock();
	if (id < 0)
		weft__fail(err, id, "runtime \"%s\": %s (%d runtimes, 2 MiB of definitions)",
			   opts->name ? opts->name : "", weft_strerror(id), RUNTIMES_MAX);
	return id < 0 ? 0 : (uint32_t)id;
}

static int runtime_known(uint32_t id)
{
	return id && id < load_acquire(&weft__hot.n_runtimes);
}

int weft_runtime_del(uint32_t id)
{
	struct weft__runtime *runtime;

	if (!runtime_known(id))
		return -EINVAL;
	runtime = &weft__runtimes[id];
	store_seq_cst(&runtime->worker, (weft_worker_fn *)NULL);
	store_seq_cst(&runtime->queue, (weft_queue_fn *)NULL);
	while (load_seq_cst(&runtime->asking))
		sched_yield();
	return 0;
}

static int worker_id_locked(uint32_t runtime, uint32_t index)
{
	uint32_t key[2] = {runtime, index};
	uint32_t id;
	int err;

	id = weft__intern_get(&registry.workers, key, sizeof(key));
	if (id)
		return (int)id;
	id = registry.workers.n + 1;
	if (id >= WEFT_WORKER_NONE || log_full())
		return -WEFT_E_LIMIT;
	weft__defs_worker(&registry.log, id, runtime, index);
	err = log_commit();
	if (!err)
		err = weft__intern_add(&registry.workers, key, sizeof(key), id);
	return err ? err : (int)id;
}

uint32_t weft_worker_id(uint32_t runtime, uint32_t index, struct weft_error *err)
{
	int id;

	if (!runtime_known(runtime)) {
		weft__fail(err, -EINVAL, "%u is no runtime; give an id of weft_runtime_add", runtime);
		return 0;
	}
	weft__registry_lock();
	id = worker_id_locked(runtime, index);
	weft__registry_unlock();
	if (id < 0)
		weft__fail(err, id, "worker %u of runtime %u: %s (%u workers, 2 MiB of definitions)", index, runtime,
			   weft_strerror(id), WEFT_WORKER_NONE - 1);
	return id < 0 ? 0 : (uint32_t)id;
}

uint32_t weft__registry_worker(uint32_t runtime, uint32_t index)
{
	uint32_t id = weft_worker_id(runtime, index, NULL);

	return id ? id : WEFT_WORKER_NONE;
}

/* A module that comes back to where it was is the same: a program that loads and unloads a plugin all day needs one
 * record. */
uint32_t weft__registry_module(const struct weft_module *module)
{
	struct weft__defs key = {0};
	struct weft_module numbered = *module;
	uint32_t id = 0;

	numbered.id = 0;
	weft__defs_module(&key, &numbered);
	weft__registry_lock();
	if (!weft__defs_oom(&key))
		id = weft__intern_get(&registry.modules, key.out.bytes, key.out.n);
	if (!id && !weft__defs_oom(&key) && !log_full()) {
		id = numbered.id = registry.modules.n + 1;
		weft__defs_module(&registry.log, &numbered);
		if (log_commit() < 0 || weft__intern_add(&registry.modules, key.out.bytes, key.out.n, id) < 0)
			id = 0;
	}
	weft__registry_unlock();
	weft__defs_fini(&key);
	return id;
}

int weft__registry_fact(const char *key, const char *value)
{
	int err = -WEFT_E_LIMIT;

	weft__registry_lock();
	if (!log_full()) {
		weft__defs_fact(&registry.log, key, value);
		err = log_commit();
	}
	weft__registry_unlock();
	return err;
}

uint32_t weft__registry_modules(void)
{
	return registry.modules.n;
}
