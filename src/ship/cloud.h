/* SPDX-License-Identifier: Apache-2.0 */
/* Services beside a machine or a container that say what it is: IMDSv2 of EC2, and what ECS has. They answer at once
 * or are not there: time-outs are short, and proxies are not asked. */
#ifndef WEFT_SHIP_CLOUD_H
#define WEFT_SHIP_CLOUD_H

#include "ship/http.h"

/* GET of a URL, with a header if it is not NULL. 0 with the body, which is the caller's, or a negative error. */
int weft__cloud_get(struct weft__http *http, const char *url, const char *header, struct weft__buf *ret,
		    struct weft_error *err);
/* A document of IMDSv2, by its path; AWS_EC2_METADATA_SERVICE_ENDPOINT says where it is. -ENODEV when
 * AWS_EC2_METADATA_DISABLED is set, or there is none. */
int weft__cloud_imds(struct weft__http *http, const char *path, struct weft__buf *ret, struct weft_error *err);

#endif
