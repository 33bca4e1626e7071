/* SPDX-License-Identifier: Apache-2.0 */
/* A target that is a function of the program (weft/report.h). */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "ship/ship.h"

struct call {
	weft_report_fn *fn;
	void *data;
	char last[256]; /* the segment that it failed with */
	uint32_t tries;
};

static int call_open(struct weft__target *t, const struct weft__target_opts *opts, struct weft_error *err)
{
	struct call *call = weft__calloc(1, sizeof(*call));

	if (!call)
		return weft__fail(err, -ENOMEM, "out of memory");
	call->fn = opts->fn;
	call->data = opts->data;
	t->state = call;
	return 0;
}

static void call_send(struct weft__target *t, const struct weft__parcel *parcel, struct weft__verdict *ret)
{
	struct call *call = t->state;
	struct weft_report report = {
		.size = sizeof(report),
		.path = parcel->path,
		.name = parcel->name,
		.bytes = parcel->bytes,
		.fd = parcel->fd,
	};
	int r;

	if (strcmp(call->last, parcel->name) != 0)
		call->tries = 0;
	report.tries = call->tries++;
	snprintf(call->last, sizeof(call->last), "%s", parcel->name);
	lseek(parcel->fd, 0, SEEK_SET);
	r = call->fn(&report, call->data);
	if (!r)
		weft__verdict(ret, PARCEL_SENT, "%s", "");
	else if (r > 0)
		weft__verdict(ret, PARCEL_REFUSED, "the function does not want it");
	else
		weft__verdict(ret, PARCEL_RETRY, "%s", weft_strerror(r));
	ret->retry_after_ns = report.retry_after_ns;
}

static void call_close(struct weft__target *t)
{
	weft__free(t->state);
}

const struct weft__target_kind weft__target_call = {
	"call", "a function of the program", call_open, call_send, call_close, TARGET_PLAIN, NULL};
