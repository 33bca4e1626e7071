/* SPDX-License-Identifier: Apache-2.0 */
/* What the machine or container is, by the services beside it: ECS task metadata v4 where its variable is set, then
 * the instance identity document of EC2. Absence is no error. Keys are those of OpenTelemetry. */
#ifndef WEFT_SHIP_HOST_H
#define WEFT_SHIP_HOST_H

#include "ship/http.h"

typedef void weft__host_fn(const char *key, const char *value, void *data);

/* Calls `fn` for each fact. Answers how many there were, or -ECANCELED. */
int weft__host_facts(struct weft__http *http, weft__host_fn *fn, void *data);
/* The same for documents of both; 0 when they make no sense. */
int weft__host_ecs(const char *text, weft__host_fn *fn, void *data);
int weft__host_ec2(const char *text, weft__host_fn *fn, void *data);

#endif
