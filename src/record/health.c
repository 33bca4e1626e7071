/* SPDX-License-Identifier: Apache-2.0 */
/* What a recorder says of itself: statistics, health, and to whom it gives its segments. CALLER. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/atomic.h"
#include "base/error.h"
#include "record/ring/ring.h"
#include "record/setup.h"
#include "weft/recorder.h"
#include "weft/report.h"

int weft_recorder_report_to(struct weft_recorder *rec, const char *name, weft_report_fn *fn, void *data,
			    struct weft_error *err)
{
	struct weft__ship *ship;
	int r;

	if (!rec)
		return 0;
	weft__recorder_lock();
	ship = rec->orphan ? NULL : rec->collector.segments.ship;
	r = ship ? weft__ship_add(ship, name, fn, data, err)
		 : weft__fail(err, -WEFT_E_STATE, "segments in memory are not sent: give the recorder a directory");
	weft__recorder_unlock();
	return r;
}

/* What keeps it from being all right, the worst first. */
static void judge(struct weft_recorder *rec, struct weft_health *health)
{
	const char *why = "";

	if (!rec)
		why = "there is no recorder";
	else if (rec->orphan)
		why = "this is a child of the recorded process";
	else if (rec->stop_err)
		why = "the last segment could not be sealed";
	else if (health->state == WEFT_STATE_DISK_FULL)
		why = "the disk is full";
	else if (health->failed & (WEFT_CHECK_SEGMENT | WEFT_CHECK_SAMPLES))
		why = rec->collector.check.why;
	if (*why)
		snprintf(health->why, sizeof(health->why), "%s", why);
	health->ok = !*why && !health->failing && !health->refused && health->state == WEFT_STATE_RECORDING;
	if (health->ok)
		health->why[0] = 0;
	else if (!health->why[0])
		snprintf(health->why, sizeof(health->why), "it does not record now");
}

int weft_recorder_health(struct weft_recorder *rec, struct weft_health *health)
{
	struct weft_health full = {0};
	size_t size = health ? health->size : 0;

	if (size < sizeof(size_t) + sizeof(uint32_t))
		return -EINVAL;
	weft__recorder_lock();
	if (rec && !rec->orphan) {
		struct weft__collector *c = &rec->collector;

		pthread_mutex_lock(&c->mutex);
		full.state = c->stuck_ns ? WEFT_STATE_DISK_FULL : rec->state;
		full.passed = c->check.passed;
		full.failed = c->check.failed;
		pthread_mutex_unlock(&c->mutex);
		weft__ship_health(c->segments.ship, &full);
	}
	judge(rec, &full);
	weft__recorder_unlock();
	memset(health, 0, size);
	memcpy(health, &full, size < sizeof(full) ? size : sizeof(full));
	health->size = size;
	return 0;
}

int weft_recorder_stats(struct weft_recorder *rec, struct weft_recorder_stats *stats)
{
	struct weft_recorder_stats full;
	size_t size = stats ? stats->size : 0;

	if (size < sizeof(size_t) + sizeof(uint32_t))
		return -EINVAL;
	memset(&full, 0, sizeof(full));
	weft__recorder_lock();
	if (rec && !rec->orphan) {
		struct weft__collector *c = &rec->collector;

		pthread_mutex_lock(&c->mutex);
		full = c->shown;
		full.state = c->stuck_ns ? WEFT_STATE_DISK_FULL : rec->state;
		pthread_mutex_unlock(&c->mutex);
		full.threads = load_relaxed(&weft__hot.threads_now);
		full.rings = load_relaxed(&rec->region.head->n_rings);
		full.ring_bytes = RING_PAGE + rec->region.head->ring_slots * sizeof(struct weft_slot);
		full.recovered = rec->recovered;
	}
	weft__recorder_unlock();
	memset(stats, 0, size);
	memcpy(stats, &full, size < sizeof(full) ? size : sizeof(full));
	stats->size = size;
	return 0;
}
