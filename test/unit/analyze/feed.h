/* SPDX-License-Identifier: Apache-2.0 */
/* Feeds an analysis with events written out in a test. Times are in ns; thread 1 and 2 are the workers demo/0 and
 * demo/1, thread 3 is a thread that is no worker; locations 1 and 2 are `accept` and `echo`. */
#ifndef WEFT_TEST_FEED_H
#define WEFT_TEST_FEED_H

#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "analyze/analysis.h"
#include "weft_test.h"

struct feed {
	struct weft__names names;
	struct weft__analysis_opts opts;
	struct weft__analysis *analysis;
	const struct weft__result *result;
};

#define NO_DEPTH WEFT_DEPTH_UNKNOWN

static inline int feed_names(struct weft__names *names)
{
	static const struct weft_thread threads[] = {
		{1, 101, 0, "w0", 100}, {2, 102, 1, "w1", 100}, {3, 103, WEFT_WORKER_NONE, "io", 100}};
	static const struct weft_worker workers[] = {{0, 0, 0}, {1, 0, 1}};
	static const struct weft_runtime_def runtime = {0, "demo"};
	static const struct weft_location_def locations[] = {{1, 80, "accept", "src/server.c"},
							     {2, 120, "echo", "src/server.c"}};
	int rc = weft__names_add_runtime(names, &runtime);
	size_t i;

	for (i = 0; i < 3; i++)
		rc |= weft__names_add_thread(names, &threads[i]);
	for (i = 0; i < 2; i++)
		rc |= weft__names_add_worker(names, &workers[i]);
	for (i = 0; i < 2; i++)
		rc |= weft__names_add_location(names, &locations[i]);
	return rc ? -ENOMEM : 0;
}

/* Definitions and options beyond these may be set between init and begin. */
static inline void feed_init(struct feed *feed)
{
	memset(feed, 0, sizeof(*feed));
	CHECK_EQ(feed_names(&feed->names), 0);
	feed->opts.names = &feed->names;
}

static inline void feed_begin(struct feed *feed)
{
	weft__names_settle(&feed->names);
	CHECK_EQ(weft__analysis_open(&feed->analysis, &feed->opts), 0);
}

static inline void feed_start(struct feed *feed)
{
	feed_init(feed);
	feed_begin(feed);
}

static inline struct weft__event feed_one(uint64_t time_ns, uint32_t thread_id, uint16_t kind, uint16_t n_fields,
					  const uint64_t *fields)
{
	return (struct weft__event){time_ns, thread_id, kind, n_fields, fields};
}

static inline void feed_event(struct feed *feed, uint64_t time_ns, uint32_t thread_id, uint16_t kind, uint16_t n_fields,
			      const uint64_t *fields)
{
	struct weft__event ev = feed_one(time_ns, thread_id, kind, n_fields, fields);

	CHECK_EQ(weft__analysis_push(feed->analysis, &ev), 0);
}

#define FEED(feed, time, thread_id, kind, ...)                                                                         \
	feed_event(feed, time, thread_id, WEFT_KIND_##kind,                                                            \
		   sizeof((uint64_t[]){0, ##__VA_ARGS__}) / sizeof(uint64_t) - 1,                                      \
		   &((uint64_t[]){0, ##__VA_ARGS__})[1])

/* Ends at `end_ns`, or with the last event when that is 0. */
static inline const struct weft__result *feed_end(struct feed *feed, uint64_t end_ns)
{
	CHECK_EQ(weft__analysis_finish(feed->analysis, end_ns, &feed->result), 0);
	return feed->result;
}

static inline void feed_close(struct feed *feed)
{
	weft__analysis_close(feed->analysis);
	weft__names_fini(&feed->names);
}

static inline const struct weft__lane *feed_lane(const struct feed *feed, uint32_t worker, uint32_t thread_id)
{
	static const struct weft__lane none;
	size_t i;

	for (i = 0; i < feed->result->lane.n_lanes; i++)
		if (feed->result->lane.lanes[i].worker == worker &&
		    (worker != WEFT_WORKER_NONE || feed->result->lane.lanes[i].thread_id == thread_id))
			return &feed->result->lane.lanes[i];
	CHECK(!"the lane is there");
	return &none;
}

static inline const struct weft__location *feed_location(const struct feed *feed, uint32_t id)
{
	static const struct weft__location none;
	size_t i;

	for (i = 0; i < feed->result->lane.n_locations; i++)
		if (feed->result->lane.locations[i].id == id)
			return &feed->result->lane.locations[i];
	CHECK(!"the place is there");
	return &none;
}

#endif
