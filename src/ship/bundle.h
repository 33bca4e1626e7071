/* SPDX-License-Identifier: Apache-2.0 */
/* A segment as the rust-agent of async-profiler stores a profile: a zip archive of the recording and
 * metadata.json, named profile_GROUP_MACHINE_PID_TIME.zip. What lists or expires such archives works with these,
 * too. Targets do so with layout=rust-agent behind the '?' of their URL, and group=NAME for another name than that
 * of the service.
 *
 * TIME is when the segment ended, not when it is sent, so that a segment that is sent again has its name again. It
 * is in seconds; segments of less than a second have milliseconds, so that none takes the name of another. */
#ifndef WEFT_SHIP_BUNDLE_H
#define WEFT_SHIP_BUNDLE_H

#include "base/buf.h"
#include "ship/ship.h"

#define BUNDLE_NAME 512
#define BUNDLE_TYPE "application/zip"
#define BUNDLE_METADATA "metadata.json"

/* `group` NULL: the name of the service. 0 or -ENAMETOOLONG. */
int weft__bundle_name(const struct weft_segment *segment, const char *group, char name[BUNDLE_NAME]);
/* When a segment began and ended, by CLOCK_REALTIME. */
void weft__bundle_times(const struct weft_segment *segment, uint64_t *start_ms, uint64_t *end_ms);
/* {"start":MS,"end":MS,"reporting_interval":MS} */
void weft__bundle_metadata(uint64_t start_ms, uint64_t end_ms, uint64_t interval_ms, struct weft__buf *to);
/* Writes the archive of a segment to `to`, an empty file. `*bytes` is its length. 0 or a negative error. */
int weft__bundle_write(const struct weft__parcel *parcel, int to, uint64_t *bytes);
/* The same, to a file without a name. Its descriptor, or a negative error. */
int weft__bundle_make(const struct weft__parcel *parcel, uint64_t *bytes);

#endif
