/* SPDX-License-Identifier: Apache-2.0 */
#include "record/options.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stddef.h>
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
#include "record/options_table.h"
#include "record/ring/layout.h"

#define MS UINT64_C(1000000)
#define MIB UINT64_C(1048576)
#define SEGMENT_MIN 4096
#define SAMPLE_EVENT_MAX 31

#define N_OPTIONS (sizeof(option_table) / sizeof(option_table[0]))

const struct weft__option *weft__option_at(size_t i)
{
	return i < N_OPTIONS ? &option_table[i] : NULL;
}

int weft__option_is_number(const struct weft__option *option)
{
	return option->type == OPTION_TYPE_U64 || option->type == OPTION_TYPE_U32;
}

uint64_t weft__option_get(const struct weft_recorder_opts *o, const struct weft__option *option)
{
	const char *field = (const char *)o + option->at;
	uint64_t wide;
	uint32_t narrow;

	if (option->type == OPTION_TYPE_U64) {
		memcpy(&wide, field, sizeof(wide));
		return wide;
	}
	memcpy(&narrow, field, sizeof(narrow));
	return narrow;
}

void weft__option_set(struct weft_recorder_opts *o, const struct weft__option *option, uint64_t value)
{
	char *field = (char *)o + option->at;
	uint32_t narrow = (uint32_t)value;

	if (option->type == OPTION_TYPE_U64)
		memcpy(field, &value, sizeof(value));
	else
		memcpy(field, &narrow, sizeof(narrow));
}

/* Defaults that depend on other options first. A segment that is as large as a file may be would be the last. */
static void set_defaults(struct weft_recorder_opts *o)
{
	struct rlimit limit;
	size_t i;

	if (!o->keep_bytes)
		o->keep_bytes = o->dir ? 1024 * MIB : 64 * MIB;
	if (!o->segment_bytes)
		o->segment_bytes = o->keep_bytes / 4 < 64 * MIB ? o->keep_bytes / 4 : 64 * MIB;
	if (!o->segment_ns)
		o->segment_ns = (o->ship_to ? 30 : 60) * 1000 * MS;
	if (!o->poll_slow_ns)
		o->poll_slow_ns = o->poll_mode == WEFT_POLLS_AUTO ? MS : 10 * MS;
	for (i = 0; i < N_OPTIONS; i++)
		if (weft__option_is_number(&option_table[i]) && option_table[i].fallback &&
		    !weft__option_get(o, &option_table[i]))
			weft__option_set(o, &option_table[i], option_table[i].fallback);
	if (o->dir && getrlimit(RLIMIT_FSIZE, &limit) == 0 && o->segment_bytes > limit.rlim_cur / 2)
		o->segment_bytes = limit.rlim_cur / 2 > SEGMENT_MIN ? limit.rlim_cur / 2 : SEGMENT_MIN;
}

/* What may be given, in words. */
static void option_range(const struct weft__option *option, char *to, size_t bytes)
{
	const char *off = option->rules & OPTION_RULE_OFF ? ", or WEFT_OFF" : "";
	const char *kind = option->rules & OPTION_RULE_POW2 ? "a power of two " : "";

	if (option->words)
		snprintf(to, bytes, "this version knows 0 to %llu", (unsigned long long)option->most);
	else if (option->most == 1)
		snprintf(to, bytes, "it is 0 or 1");
	else if (option->least && option->most)
		snprintf(to, bytes, "give %sfrom %llu to %llu%s", kind, (unsigned long long)option->least,
			 (unsigned long long)option->most, off);
	else if (option->most)
		snprintf(to, bytes, "give %sat most %llu%s", kind, (unsigned long long)option->most, off);
	else
		snprintf(to, bytes, "give %sat least %llu%s", kind, (unsigned long long)option->least, off);
}

int weft__option_check(const struct weft_recorder_opts *o, const struct weft__option *option, struct weft_error *err)
{
	uint64_t value = weft__option_get(o, option);
	char range[100];

	if (!value || (value == WEFT_OFF && option->rules & OPTION_RULE_OFF))
		return 0;
	if (value >= option->least && (!option->most || value <= option->most) &&
	    (!(option->rules & OPTION_RULE_POW2) || !(value & (value - 1))))
		return 0;
	option_range(option, range, sizeof(range));
	return weft__fail(err, -WEFT_E_OPTION, "%s is %llu; %s", option->name, (unsigned long long)value, range);
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
	if (signal_is_ill(o->sample_signal))
		return weft__fail(err, -WEFT_E_OPTION,
				  "sample_signal is %d, which cannot be used; SIGPROF, SIGVTALRM, SIGUSR1, SIGUSR2 and "
				  "SIGRTMIN to SIGRTMAX can",
				  o->sample_signal);
	if (o->sample_event && strlen(o->sample_event) > SAMPLE_EVENT_MAX)
		return weft__fail(err, -WEFT_E_OPTION, "sample_event is longer than %d bytes", SAMPLE_EVENT_MAX);
	return 0;
}

static int check_triggers(const struct weft_recorder_opts *o, struct weft_error *err)
{
	if (o->trigger_signal && signal_is_ill((int32_t)o->trigger_signal))
		return weft__fail(
			err, -WEFT_E_OPTION,
			"trigger_signal is %u, which cannot be used; SIGUSR1, SIGUSR2 and SIGRTMIN to SIGRTMAX can",
			o->trigger_signal);
	if (o->trigger_signal && (int32_t)o->trigger_signal == o->sample_signal)
		return weft__fail(err, -WEFT_E_OPTION,
				  "trigger_signal and sample_signal are both %u; choose another for one of them",
				  o->trigger_signal);
	if (o->flight_ns && !o->dir)
		return weft__fail(err, -WEFT_E_OPTION, "flight_ns needs dir, the directory of dumps");
	if (!o->flight_ns && (o->trigger_signal || o->trigger_poll_ns))
		return weft__fail(
			err, -WEFT_E_OPTION,
			"trigger_signal and trigger_poll_ns ask for dumps; set flight_ns (WEFT_FLIGHT_SECONDS), too");
	return 0;
}

static int check_off(const struct weft_recorder_opts *o, struct weft_error *err)
{
	uint32_t signal = o->off_signal;

	if (!signal)
		return 0;
	if (signal_is_ill((int32_t)signal))
		return weft__fail(
			err, -WEFT_E_OPTION,
			"off_signal is %u, which cannot be used; SIGUSR1, SIGUSR2 and SIGRTMIN to SIGRTMAX can",
			signal);
	if (signal == (uint32_t)o->sample_signal || signal == o->trigger_signal)
		return weft__fail(err, -WEFT_E_OPTION, "off_signal is %u, which is another option's, too", signal);
	return 0;
}

static int check(const struct weft_recorder_opts *o, struct weft_error *err)
{
	size_t i;

	for (i = 0; i < N_OPTIONS; i++)
		if (weft__option_is_number(&option_table[i]) && weft__option_check(o, &option_table[i], err) < 0)
			return -WEFT_E_OPTION;
	if (o->keep_bytes < o->segment_bytes)
		return weft__fail(err, -WEFT_E_OPTION,
				  "keep_bytes (%llu) is smaller than segment_bytes (%llu); make it at least as large",
				  (unsigned long long)o->keep_bytes, (unsigned long long)o->segment_bytes);
	if (o->file_mode != FILE_MODE && o->file_mode != FILE_MODE_GROUP)
		return weft__fail(err, -WEFT_E_OPTION,
				  "file_mode is %#o; give 0600, or 0640 for a group that may read the segments",
				  o->file_mode);
	if (o->dir && (!*o->dir || strlen(o->dir) > 300))
		return weft__fail(err, -WEFT_E_OPTION, "dir is empty or longer than 300 bytes");
	if (check_sampling(o, err) < 0)
		return -WEFT_E_OPTION;
	if (check_off(o, err) < 0)
		return -WEFT_E_OPTION;
	return check_triggers(o, err);
}

int weft__options_take(struct weft_recorder_opts *o, const struct weft_recorder_opts *given, struct weft_error *err)
{
	const unsigned char *bytes = (const unsigned char *)given;
	size_t i;

	memset(o, 0, sizeof(*o));
	if (given) {
		if (given->size < sizeof(size_t))
			return weft__fail(err, -WEFT_E_OPTION,
					  "options have no size; use WEFT_OPTIONS_INIT(weft_recorder_opts)");
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

/* Copies of the texts, which are the caller's. 0 or -ENOMEM. */
static int copy_texts(struct weft__options *options)
{
	struct {
		const char **from;
		char **to;
	} texts[] = {{&options->o.dir, &options->dir},
		     {&options->o.name, &options->name},
		     {&options->o.sample_event, &options->event},
		     {&options->o.ship_to, &options->ship_to},
		     {&options->o.off_file, &options->off_file}};
	size_t i;

	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		if (!*texts[i].from)
			continue;
		*texts[i].to = weft__strdup(*texts[i].from);
		if (!*texts[i].to)
			return -ENOMEM;
		*texts[i].from = *texts[i].to;
	}
	return 0;
}

/* What is sent has to wait somewhere: in a directory of this user's, which nobody else could have made. */
static void spool_dir(struct weft_recorder_opts *o, char *to, size_t bytes)
{
	if (o->dir || !o->ship_to)
		return;
	snprintf(to, bytes, "/var/tmp/weft-%u", (unsigned)geteuid());
	o->dir = to;
	o->ship_delete = 1;
}

int weft__options_init(struct weft__options *options, const struct weft_recorder_opts *given, struct weft_error *err)
{
	char program[64], spool[64];
	int r;

	memset(options, 0, sizeof(*options));
	r = weft__options_take(&options->o, given, err);
	if (r)
		return r;
	if (options->o.ship_to && !*options->o.ship_to)
		options->o.ship_to = NULL;
	if (options->o.off_file && !*options->o.off_file)
		options->o.off_file = NULL;
	spool_dir(&options->o, spool, sizeof(spool));
	set_defaults(&options->o);
	r = check(&options->o, err);
	if (r)
		return r;
	weft__facts_program(program, sizeof(program));
	if (!options->o.name || !*options->o.name)
		options->o.name = program;
	if (copy_texts(options) < 0) {
		weft__options_fini(options);
		return weft__fail(err, -ENOMEM, "out of memory");
	}
	r = copy_labels(options, options->o.labels, err);
	if (r) {
		weft__options_fini(options);
		return r;
	}
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
	weft__free(options->ship_to);
	weft__free(options->off_file);
	weft__free(options->config);
	weft__free(options->service);
	for (i = 0; i < LABELS_MAX; i++)
		weft__free(options->labels[i]);
	memset(options, 0, sizeof(*options));
}
