/* SPDX-License-Identifier: Apache-2.0 */
#include "record/options.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/dir.h"
#include "base/error.h"
#include "record/collect/segments.h"
#include "record/host/facts.h"
#include "record/ring/layout.h"

#define MS UINT64_C(1000000)
#define MIB UINT64_C(1048576)
#define SEGMENT_MIN 4096
#define SAMPLE_HZ_MAX 50000
#define SAMPLE_DEPTH_MAX 1024
#define SAMPLE_EVENT_MAX 31
#define WALL_HZ_MAX 1000
#define FLIGHT_MIN_NS (100 * MS)
#define FLIGHT_MAX_NS (86400000 * MS)

#define DEFAULT(field, value)                                                                                          \
	do {                                                                                                           \
		if (!(field))                                                                                          \
			(field) = (value);                                                                             \
	} while (0)

/* A segment that is as large as a file may be would be the last. */
static void set_defaults(struct weft_recorder_opts *o)
{
	struct rlimit limit;

	DEFAULT(o->keep_bytes, o->dir ? 1024 * MIB : 64 * MIB);
	DEFAULT(o->segment_bytes, o->keep_bytes / 4 < 64 * MIB ? o->keep_bytes / 4 : 64 * MIB);
	DEFAULT(o->segment_ns, 60000 * MS);
	DEFAULT(o->drain_ns, 250 * MS);
	DEFAULT(o->flush_ns, 1000 * MS);
	DEFAULT(o->queue_ns, 10 * MS);
	DEFAULT(o->ring_bytes, 65536);
	DEFAULT(o->max_threads, 4096);
	DEFAULT(o->quantum_ns, 8);
	DEFAULT(o->level, 1);
	DEFAULT(o->sample_hz, 99);
	DEFAULT(o->sample_depth, SAMPLE_DEPTH_MAX);
	DEFAULT(o->poll_cap, 1000);
	DEFAULT(o->poll_slow_ns, o->poll_mode == WEFT_POLLS_AUTO ? MS : 10 * MS);
	DEFAULT(o->wait_ns, 10 * MS);
	DEFAULT(o->stuck_ns, 1000 * MS);
	DEFAULT(o->budget_ppm, 10000);
	DEFAULT(o->trigger_quiet_ns, 60000 * MS);
	DEFAULT(o->file_mode, FILE_MODE);
	if (o->dir && getrlimit(RLIMIT_FSIZE, &limit) == 0 && o->segment_bytes > limit.rlim_cur / 2)
		o->segment_bytes = limit.rlim_cur / 2 > SEGMENT_MIN ? limit.rlim_cur / 2 : SEGMENT_MIN;
}

static int power_of_two(uint64_t v)
{
	return v && !(v & (v - 1));
}

/* Signals that a program gets because of what it does, or that cannot be caught. */
static int signal_is_ill(int32_t signal)
{
	static const int ill[] = {SIGKILL, SIGSTOP, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS};
	size_t i;

	for (i = 0; i < sizeof(ill) / sizeof(ill[0]); i++)
		if (signal == ill[i])
			return 1;
	return signal < 0 || signal > SIGRTMAX || (signal > SIGSYS && signal < SIGRTMIN);
}

static int check_sampling(const struct weft_recorder_opts *o, struct weft_error *err)
{
	if (o->sample_hz > SAMPLE_HZ_MAX && o->sample_hz != WEFT_SAMPLE_OFF)
		return weft__fail(err, -WEFT_E_OPTION,
				  "sample_hz is %u; give 1 to %u samples a second, or WEFT_SAMPLE_OFF", o->sample_hz,
				  SAMPLE_HZ_MAX);
	if (o->sample_engine > WEFT_ENGINE_PERF)
		return weft__fail(err, -WEFT_E_OPTION, "sample_engine is %u, which this version does not know",
				  o->sample_engine);
	if (o->sample_kernel > 1 || o->symbolize > 1)
		return weft__fail(err, -WEFT_E_OPTION, "sample_kernel and symbolize are 0 or 1");
	if (o->sample_depth > SAMPLE_DEPTH_MAX)
		return weft__fail(err, -WEFT_E_OPTION, "sample_depth is %u; at most %u frames", o->sample_depth,
				  SAMPLE_DEPTH_MAX);
	if (signal_is_ill(o->sample_signal))
		return weft__fail(err, -WEFT_E_OPTION,
				  "sample_signal is %d, which cannot be used; SIGPROF, SIGVTALRM, SIGUSR1, SIGUSR2 and "
				  "SIGRTMIN to SIGRTMAX can",
				  o->sample_signal);
	if (o->sample_event && strlen(o->sample_event) > SAMPLE_EVENT_MAX)
		return weft__fail(err, -WEFT_E_OPTION, "sample_event is longer than %d bytes", SAMPLE_EVENT_MAX);
	return 0;
}

static int check_waits(const struct weft_recorder_opts *o, struct weft_error *err)
{
	if (o->switches > WEFT_SWITCH_STACKS || o->poll_mode > WEFT_POLLS_ALL)
		return weft__fail(err, -WEFT_E_OPTION,
				  "switches or poll_mode has a value that this version does not know");
	if (o->wall_hz > WALL_HZ_MAX && o->wall_hz != WEFT_SAMPLE_OFF)
		return weft__fail(err, -WEFT_E_OPTION, "wall_hz is %u; give 1 to %u looks a second, or WEFT_SAMPLE_OFF",
				  o->wall_hz, WALL_HZ_MAX);
	if (o->budget_ppm > 1000000 && o->budget_ppm != WEFT_SAMPLE_OFF)
		return weft__fail(err, -WEFT_E_OPTION, "budget_ppm is %u; give 1 to 1000000, or WEFT_SAMPLE_OFF",
				  o->budget_ppm);
	if (o->stuck_ns < 10 * MS)
		return weft__fail(err, -WEFT_E_OPTION, "stuck_ns must be at least 10 ms");
	if (o->trigger_signal && signal_is_ill((int32_t)o->trigger_signal))
		return weft__fail(
			err, -WEFT_E_OPTION,
			"trigger_signal is %u, which cannot be used; SIGUSR1, SIGUSR2 and SIGRTMIN to SIGRTMAX can",
			o->trigger_signal);
	if (o->trigger_signal && (int32_t)o->trigger_signal == o->sample_signal)
		return weft__fail(err, -WEFT_E_OPTION, "trigger_signal and sample_signal are both %u; give one another",
				  o->trigger_signal);
	if (o->flight_ns && (!o->dir || o->flight_ns < FLIGHT_MIN_NS || o->flight_ns > FLIGHT_MAX_NS))
		return weft__fail(err, -WEFT_E_OPTION,
				  "flight_ns keeps from 100 ms to a day, and needs dir, where dumps are written to");
	if (!o->flight_ns && (o->trigger_signal || o->trigger_poll_ns))
		return weft__fail(
			err, -WEFT_E_OPTION,
			"trigger_signal and trigger_poll_ns ask for dumps; set flight_ns (WEFT_FLIGHT_SECONDS), too");
	if (o->trigger_forward_ns > FLIGHT_MAX_NS)
		return weft__fail(err, -WEFT_E_OPTION, "trigger_forward_ns is more than a day");
	return 0;
}

static int check(const struct weft_recorder_opts *o, struct weft_error *err)
{
	if (!power_of_two(o->ring_bytes) || o->ring_bytes < 8192 || o->ring_bytes > (1u << 30))
		return weft__fail(err, -WEFT_E_OPTION,
				  "ring_bytes is %u; it must be a power of two from 8 KiB to 1 GiB", o->ring_bytes);
	if (!power_of_two(o->quantum_ns) || o->quantum_ns > (1u << 20))
		return weft__fail(err, -WEFT_E_OPTION, "quantum_ns is %u; it must be a power of two up to 1048576",
				  o->quantum_ns);
	if (o->max_threads > (1u << 20))
		return weft__fail(err, -WEFT_E_OPTION, "max_threads is %u; at most 1048576", o->max_threads);
	if (o->drain_ns > 250 * MS || o->drain_ns < MS)
		return weft__fail(err, -WEFT_E_OPTION, "drain_ns must be from 1 ms to 250 ms");
	if (o->queue_ns < MS)
		return weft__fail(err, -WEFT_E_OPTION, "queue_ns must be at least 1 ms");
	if (o->segment_bytes < SEGMENT_MIN)
		return weft__fail(err, -WEFT_E_OPTION, "segment_bytes must be at least %d", SEGMENT_MIN);
	if (o->keep_bytes < o->segment_bytes)
		return weft__fail(err, -WEFT_E_OPTION,
				  "keep_bytes (%llu) is smaller than segment_bytes (%llu); make it at least as large",
				  (unsigned long long)o->keep_bytes, (unsigned long long)o->segment_bytes);
	if (o->on_fork > WEFT_FORK_RESTART || o->ring_place > WEFT_RING_MEMORY || o->level > 19)
		return weft__fail(err, -WEFT_E_OPTION,
				  "on_fork, ring_place or level has a value that this version does not know");
	if (o->file_mode != FILE_MODE && o->file_mode != FILE_MODE_GROUP)
		return weft__fail(err, -WEFT_E_OPTION,
				  "file_mode is %#o; give 0600, or 0640 for a group that may read the segments",
				  o->file_mode);
	if (o->dir && (!*o->dir || strlen(o->dir) > 300))
		return weft__fail(err, -WEFT_E_OPTION, "dir is empty or longer than 300 bytes");
	if (check_sampling(o, err) < 0)
		return -WEFT_E_OPTION;
	return check_waits(o, err);
}

int weft__options_take(struct weft_recorder_opts *o, const struct weft_recorder_opts *given, struct weft_error *err)
{
	const unsigned char *bytes = (const unsigned char *)given;
	size_t i;

	memset(o, 0, sizeof(*o));
	if (given) {
		if (given->size < sizeof(size_t))
			return weft__fail(err, -WEFT_E_OPTION,
					  "options have no size; set .size = sizeof(struct weft_recorder_opts)");
		for (i = sizeof(*o); i < given->size; i++)
			if (bytes[i])
				return weft__fail(err, -E2BIG,
						  "options from a newer header use fields that weft %s does not know",
						  WEFT_VERSION_STRING);
		memcpy(o, given, given->size < sizeof(*o) ? given->size : sizeof(*o));
	}
	o->size = sizeof(*o);
	return 0;
}

static int copy_labels(struct weft__options *options, const char *const *labels, struct weft_error *err)
{
	size_t i;

	for (i = 0; labels && labels[i]; i++) {
		if (i == LABELS_MAX || !strchr(labels[i], '='))
			return weft__fail(err, -WEFT_E_OPTION, "label \"%s\": at most %d labels, each key=value",
					  labels[i], LABELS_MAX);
		options->labels[i] = weft__strdup(labels[i]);
		if (!options->labels[i])
			return weft__fail(err, -ENOMEM, "out of memory");
	}
	return 0;
}

int weft__options_init(struct weft__options *options, const struct weft_recorder_opts *given, struct weft_error *err)
{
	char program[64];
	int r;

	memset(options, 0, sizeof(*options));
	r = weft__options_take(&options->o, given, err);
	if (r)
		return r;
	set_defaults(&options->o);
	r = check(&options->o, err);
	if (r)
		return r;
	weft__facts_program(program, sizeof(program));
	options->name = weft__strdup(options->o.name && *options->o.name ? options->o.name : program);
	if (options->o.dir)
		options->dir = weft__strdup(options->o.dir);
	if (options->o.sample_event)
		options->event = weft__strdup(options->o.sample_event);
	if (!options->name || (options->o.dir && !options->dir) || (options->o.sample_event && !options->event)) {
		weft__options_fini(options);
		return weft__fail(err, -ENOMEM, "out of memory");
	}
	r = copy_labels(options, options->o.labels, err);
	if (r) {
		weft__options_fini(options);
		return r;
	}
	options->o.dir = options->dir;
	options->o.name = options->name;
	options->o.sample_event = options->event;
	options->o.labels = (const char *const *)options->labels;
	return 0;
}

int weft__options_dir(struct weft__options *options, struct weft_error *err)
{
	unsigned make = options->o.file_mode == FILE_MODE_GROUP ? DIR_MODE_GROUP : DIR_MODE;
	int r = 0, dir = weft__dir_use(options->dir, make, err);
	char path[PATH_MAX];
	char *copy;

	if (dir == -EACCES || dir == -EROFS)
		return weft__fail(err, dir, "%s: %s; give a directory that this user can write", options->dir,
				  weft_strerror(dir));
	if (dir < 0)
		return dir;
	if (access(options->dir, W_OK | X_OK) < 0 || !realpath(options->dir, path))
		r = -errno;
	close(dir);
	if (r)
		return weft__fail(err, r, "%s: %s; give a directory that this user can write", options->dir,
				  weft_strerror(r));
	copy = weft__strdup(path);
	if (!copy)
		return weft__fail(err, -ENOMEM, "out of memory");
	weft__free(options->dir);
	options->o.dir = options->dir = copy;
	return 0;
}

void weft__options_fini(struct weft__options *options)
{
	size_t i;

	weft__free(options->dir);
	weft__free(options->name);
	weft__free(options->event);
	for (i = 0; i < LABELS_MAX; i++)
		weft__free(options->labels[i]);
	memset(options, 0, sizeof(*options));
}

static void env_text(const char *name, const char **ret)
{
	const char *text = getenv(name);

	if (text && *text)
		*ret = text;
}

/* A number with an optional K, M or G; times `unit`. */
static int env_number(const char *name, uint64_t unit, uint64_t max, uint64_t *ret, struct weft_error *err)
{
	const char *text = getenv(name);
	unsigned long long v;
	uint64_t scale = 1;
	char *end;

	if (!text || !*text)
		return 0;
	errno = 0;
	v = strtoull(text, &end, 10);
	if (*end == 'K' || *end == 'k')
		scale = 1024;
	else if (*end == 'M' || *end == 'm')
		scale = MIB;
	else if (*end == 'G' || *end == 'g')
		scale = 1024 * MIB;
	if (scale > 1)
		end++;
	if (errno || end == text || *end || *text == '-' || v > max / scale / unit)
		return weft__fail(err, -WEFT_E_OPTION,
				  "%s=%s: give a whole number, with K, M or G behind it if you like", name, text);
	*ret = (uint64_t)v * scale * unit;
	return 0;
}

static int env_u32(const char *name, uint32_t *ret, struct weft_error *err)
{
	uint64_t v = *ret;
	int r = env_number(name, 1, UINT32_MAX, &v, err);

	*ret = (uint32_t)v;
	return r;
}

static int env_word(const char *name, const char *const *words, uint32_t *ret, struct weft_error *err)
{
	const char *text = getenv(name);
	char all[64] = ""; /* which the few short words fit */
	size_t n = 0;
	uint32_t i;

	if (!text || !*text)
		return 0;
	for (i = 0; words[i]; i++) {
		if (!strcmp(text, words[i])) {
			*ret = i;
			return 0;
		}
		n += (size_t)snprintf(all + n, sizeof(all) - n, "%s%s", i ? ", " : "", words[i]);
	}
	return weft__fail(err, -WEFT_E_OPTION, "%s=%s: give one of %s", name, text, all);
}

static int env_sampling(struct weft_recorder_opts *opts, struct weft_error *err)
{
	static const char *const engines[] = {"auto", "timer", "perf", NULL};
	const char *hz = getenv("WEFT_SAMPLE_HZ");
	int r;

	env_text("WEFT_SAMPLE_EVENT", &opts->sample_event);
	if (hz && (!strcmp(hz, "off") || !strcmp(hz, "0")))
		opts->sample_hz = WEFT_SAMPLE_OFF;
	else if ((r = env_u32("WEFT_SAMPLE_HZ", &opts->sample_hz, err)))
		return r;
	if ((r = env_word("WEFT_SAMPLE_ENGINE", engines, &opts->sample_engine, err)) ||
	    (r = env_u32("WEFT_SAMPLE_KERNEL", &opts->sample_kernel, err)) ||
	    (r = env_u32("WEFT_SAMPLE_DEPTH", &opts->sample_depth, err)))
		return r;
	return env_u32("WEFT_SYMBOLIZE", &opts->symbolize, err);
}

/* A number of `unit`, or "off". */
static int env_time(const char *name, uint64_t unit, uint64_t *ret, struct weft_error *err)
{
	const char *text = getenv(name);

	if (text && !strcmp(text, "off")) {
		*ret = WEFT_OFF;
		return 0;
	}
	return env_number(name, unit, UINT64_MAX, ret, err);
}

static int env_u32_off(const char *name, uint32_t *ret, struct weft_error *err)
{
	const char *text = getenv(name);

	if (text && !strcmp(text, "off")) {
		*ret = WEFT_SAMPLE_OFF;
		return 0;
	}
	return env_u32(name, ret, err);
}

static int env_mode(const char *name, uint32_t *ret, struct weft_error *err)
{
	const char *text = getenv(name);
	char *end;
	unsigned long v;

	if (!text || !*text)
		return 0;
	v = strtoul(text, &end, 8);
	if (*end || *text == '-' || v > 07777)
		return weft__fail(err, -WEFT_E_OPTION, "%s=%s: give 0600, or 0640", name, text);
	*ret = (uint32_t)v;
	return 0;
}

/* A number, or a name with or without its SIG. */
static int env_signal(const char *name, uint32_t *ret, struct weft_error *err)
{
	const char *text = getenv(name), *known;
	struct weft_error number;
	int i, r;

	for (i = 1; text && i <= SIGSYS; i++) {
		known = sigabbrev_np(i);
		if (known && !strcmp(strncmp(text, "SIG", 3) ? text : text + 3, known)) {
			*ret = (uint32_t)i;
			return 0;
		}
	}
	r = env_u32(name, ret, &number);
	return r ? weft__fail(err, r, "%s=%s: give the number of a signal, or its name, such as USR2", name, text) : 0;
}

static int env_waits(struct weft_recorder_opts *opts, struct weft_error *err)
{
	static const char *const switches[] = {"auto", "off", "intervals", "stacks", NULL};
	static const char *const polls[] = {"auto", "slow", "caught", "all", NULL};
	int r;

	if ((r = env_word("WEFT_SWITCHES", switches, &opts->switches, err)) ||
	    (r = env_u32_off("WEFT_WALL_HZ", &opts->wall_hz, err)) ||
	    (r = env_word("WEFT_POLLS", polls, &opts->poll_mode, err)) ||
	    (r = env_u32("WEFT_POLL_CAP", &opts->poll_cap, err)) ||
	    (r = env_time("WEFT_POLL_SLOW_MS", MS, &opts->poll_slow_ns, err)) ||
	    (r = env_time("WEFT_WAIT_MS", MS, &opts->wait_ns, err)) ||
	    (r = env_time("WEFT_STUCK_MS", MS, &opts->stuck_ns, err)) ||
	    (r = env_u32_off("WEFT_BUDGET_PPM", &opts->budget_ppm, err)) ||
	    (r = env_number("WEFT_FLIGHT_SECONDS", 1000 * MS, UINT64_MAX, &opts->flight_ns, err)) ||
	    (r = env_signal("WEFT_TRIGGER_SIGNAL", &opts->trigger_signal, err)) ||
	    (r = env_number("WEFT_TRIGGER_FORWARD_SECONDS", 1000 * MS, UINT64_MAX, &opts->trigger_forward_ns, err)) ||
	    (r = env_number("WEFT_TRIGGER_POLL_MS", MS, UINT64_MAX, &opts->trigger_poll_ns, err)))
		return r;
	return env_number("WEFT_TRIGGER_QUIET_SECONDS", 1000 * MS, UINT64_MAX, &opts->trigger_quiet_ns, err);
}

static int env_labels(struct weft_recorder_opts *opts, struct weft__options *store, struct weft_error *err)
{
	const char *text = getenv("WEFT_LABELS");
	size_t n = 0;

	while (text && *text) {
		size_t length = strcspn(text, ",");
		char *label;

		if (n == LABELS_MAX)
			return weft__fail(err, -WEFT_E_OPTION, "WEFT_LABELS: at most %d labels", LABELS_MAX);
		label = weft__alloc(length + 1);
		if (!label)
			return weft__fail(err, -ENOMEM, "out of memory");
		memcpy(label, text, length);
		label[length] = 0;
		store->labels[n++] = label;
		text += length + (text[length] == ',');
	}
	if (n)
		opts->labels = (const char *const *)store->labels;
	return 0;
}

int weft__options_env(struct weft_recorder_opts *opts, struct weft__options *store, struct weft_error *err)
{
	static const char *const forks[] = {"off", "restart", NULL};
	static const char *const places[] = {"auto", "dir", "memory", NULL};
	int r;

	env_text("WEFT_DIR", &opts->dir);
	env_text("WEFT_NAME", &opts->name);
	if ((r = env_number("WEFT_SEGMENT_BYTES", 1, UINT64_MAX, &opts->segment_bytes, err)) ||
	    (r = env_number("WEFT_SEGMENT_SECONDS", 1000 * MS, UINT64_MAX, &opts->segment_ns, err)) ||
	    (r = env_number("WEFT_KEEP_BYTES", 1, UINT64_MAX, &opts->keep_bytes, err)) ||
	    (r = env_number("WEFT_KEEP_SECONDS", 1000 * MS, UINT64_MAX, &opts->keep_ns, err)) ||
	    (r = env_u32("WEFT_RING_BYTES", &opts->ring_bytes, err)) ||
	    (r = env_u32("WEFT_MAX_THREADS", &opts->max_threads, err)) ||
	    (r = env_u32("WEFT_QUANTUM_NS", &opts->quantum_ns, err)) || (r = env_u32("WEFT_SYNC", &opts->sync, err)) ||
	    (r = env_u32("WEFT_LEVEL", &opts->level, err)) || (r = env_word("WEFT_FORK", forks, &opts->on_fork, err)) ||
	    (r = env_word("WEFT_RING", places, &opts->ring_place, err)) ||
	    (r = env_mode("WEFT_FILE_MODE", &opts->file_mode, err)))
		return r;
	r = env_sampling(opts, err);
	r = r ? r : env_waits(opts, err);
	return r ? r : env_labels(opts, store, err);
}
