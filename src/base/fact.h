/* SPDX-License-Identifier: Apache-2.0 */
/* Facts of a segment that go to others as tags or labels of a profile. Any context. */
#ifndef WEFT_BASE_FACT_H
#define WEFT_BASE_FACT_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* Before the names of what the user of the recorder gave (WEFT_LABELS). */
#define FACT_LABEL "label."

/* What the machine's owner says of it: names are those of OpenTelemetry, and stay. */
static inline bool weft__fact_of_cloud(const char *key)
{
	static const char *const begins[] = {"cloud.", "aws.ecs.", "k8s.", "container.", "host.id", "host.type"};
	size_t i;

	for (i = 0; i < sizeof(begins) / sizeof(begins[0]); i++)
		if (strncmp(key, begins[i], strlen(begins[i])) == 0)
			return true;
	return false;
}

#endif
