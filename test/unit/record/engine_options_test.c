/* SPDX-License-Identifier: Apache-2.0 */
/* Options of sampling, from the struct and from the environment. */
#include "samples.h"

#include <signal.h>

static struct samples result;

static int opens(const struct weft_recorder_opts *given, const char *says)
{
	struct weft_recorder_opts opts = *given;
	struct weft_recorder *rec = NULL;
	struct weft_error err = {0};
	int r;

	opts.size = sizeof(opts);
	r = weft_recorder_open(&rec, &opts, &err);
	weft_recorder_close(rec, NULL);
	if (r < 0 && !strstr(err.msg, says))
		printf("\t\"%s\" does not say \"%s\"\n", err.msg, says);
	return r < 0 && !strstr(err.msg, says) ? 1 : r;
}

TEST(values_that_make_no_sense_are_refused_with_a_reason)
{
	CHECK_EQ(opens(&(struct weft_recorder_opts){.sample_hz = 100000}, "50000"), -WEFT_E_OPTION);
	CHECK_EQ(opens(&(struct weft_recorder_opts){.sample_engine = 9}, "sample_engine is 9"), -WEFT_E_OPTION);
	CHECK_EQ(opens(&(struct weft_recorder_opts){.sample_depth = 1025}, "at most 1024"), -WEFT_E_OPTION);
	CHECK_EQ(opens(&(struct weft_recorder_opts){.sample_kernel = 2}, "0 or 1"), -WEFT_E_OPTION);
	CHECK_EQ(opens(&(struct weft_recorder_opts){.sample_event = "nonsense"}, "nonsense"), -WEFT_E_OPTION);
	CHECK_EQ(opens(&(struct weft_recorder_opts){.sample_signal = SIGKILL}, "SIGPROF"), -WEFT_E_OPTION);
	CHECK_EQ(opens(&(struct weft_recorder_opts){.sample_signal = SIGSEGV}, "SIGPROF"), -WEFT_E_OPTION);
	CHECK_EQ(opens(&(struct weft_recorder_opts){.sample_signal = 32}, "SIGPROF"), -WEFT_E_OPTION);
	CHECK_EQ(opens(&(struct weft_recorder_opts){.sample_signal = -1}, "SIGPROF"), -WEFT_E_OPTION);
	CHECK_EQ(opens(&(struct weft_recorder_opts){.sample_signal = SIGRTMAX}, ""), 0);
	CHECK_EQ(opens(&(struct weft_recorder_opts){.sample_hz = WEFT_OFF, .sample_event = "nonsense"}, ""), 0);
}

static char warned[512];

static void keep_warning(enum weft_log_level level, const char *msg, void *data)
{
	(void)level;
	(void)data;
	snprintf(warned, sizeof(warned), "%s", msg);
}

/* The value of a fact of a recording that was made with these variables; they are gone afterwards. What was warned of
 * meanwhile is in `warned`. */
static const char *fact_with(const char *variable, const char *value, const char *key)
{
	static char text[512];
	struct weft_recorder_opts opts = {.size = sizeof(opts)};
	struct weft_recorder *rec = NULL;
	struct weft_error err = {0};
	struct dirent **entries;
	int n;

	session_fresh_dir();
	opts.dir = session_dir;
	text[0] = 0;
	warned[0] = 0;
	setenv(variable, value, 1);
	weft_set_log(keep_warning, WEFT_LOG_WARN, NULL);
	if (weft_recorder_open_env(&rec, &opts, &err) < 0)
		snprintf(text, sizeof(text), "%s", err.msg);
	weft_set_log(NULL, WEFT_LOG_WARN, NULL);
	unsetenv(variable);
	if (rec && weft_recorder_start(rec, &err) == 0)
		weft_park(0);
	weft_recorder_close(rec, NULL);
	n = scandir(session_dir, &entries, tally_is_segment, alphasort);
	for (int i = 0; i < n; i++) {
		char path[4096];
		struct weft_segment *seg;

		snprintf(path, sizeof(path), "%s/%s", session_dir, entries[i]->d_name);
		if (weft_segment_open(&seg, path, NULL) == 0) {
			const char *found = weft_segment_fact(seg, key);

			snprintf(text, sizeof(text), "%s", found ? found : "");
			weft_segment_close(seg);
		}
		free(entries[i]);
	}
	if (n >= 0)
		free(entries);
	session_remove_dir();
	return text;
}

TEST(variables_choose_engine_rate_and_depth_of_samples)
{
	CHECK_STR(fact_with("WEFT_NAME", "x", "sample.engine"), "timer");
	CHECK_STR(fact_with("WEFT_NAME", "x", "sample.hz"), "99");
	CHECK_STR(fact_with("WEFT_SAMPLE_HZ", "off", "sample.engine"), "off");
	CHECK_STR(fact_with("WEFT_SAMPLE_HZ", "0", "sample.engine"), "off");
	CHECK_STR(fact_with("WEFT_SAMPLE_HZ", "50", "sample.hz"), "50");
	CHECK_STR(fact_with("WEFT_SAMPLE_ENGINE", "timer", "sample.why"), "asked for");
	CHECK_STR(fact_with("WEFT_SAMPLE_ENGINE", "magic", "sample.engine"), "timer");
	CHECK(strstr(warned, "auto, timer, perf") != NULL);
	CHECK_STR(fact_with("WEFT_SAMPLE_HZ", "fast", "sample.hz"), "99");
	CHECK(strstr(warned, "WEFT_SAMPLE_HZ=fast") != NULL);
	CHECK_STR(fact_with("WEFT_SAMPLE_DEPTH", "5000", "sample.hz"), "99");
	CHECK(strstr(warned, "at most 1024") != NULL);
	CHECK(strstr(fact_with("WEFT_SAMPLE_EVENT", "nonsense", ""), "nonsense") != NULL);
}

TEST(rates_above_the_tick_are_for_perf)
{
	struct weft_recorder *rec;

	rec = session_start(&(struct weft_recorder_opts){.sample_hz = 2000});
	REQUIRE(rec);
	weft_park(0);
	samples_end(&result, rec, NULL, 0);
	CHECK(!strcmp(result.engine, "perf") || strstr(result.degraded, "samples a second"));
	rec = session_start(&(struct weft_recorder_opts){.sample_hz = 2000, .sample_engine = WEFT_ENGINE_TIMER});
	REQUIRE(rec);
	weft_park(0);
	samples_end(&result, rec, NULL, 0);
	CHECK_STR(result.engine, "timer");
	CHECK(strstr(result.degraded, "samples a second") != NULL);
}
