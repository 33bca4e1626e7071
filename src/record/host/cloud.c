/* SPDX-License-Identifier: Apache-2.0 */
#include "record/host/cloud.h"

#include <stdio.h>
#include <string.h>

#include "base/atomic.h"
#include "segment/defs.h"

#define FACTS_MOST 16
#define TEXT_BYTES 256

/* Written once and then constant: readers see the first n_facts of them. A child of fork is on the same machine. */
static struct {
	char key[48];
	char value[TEXT_BYTES];
} cloud_facts[FACTS_MOST];
static uint32_t n_facts;

void weft__cloud_add(const char *key, const char *value)
{
	uint32_t n = load_relaxed(&n_facts);

	if (n == FACTS_MOST)
		return;
	snprintf(cloud_facts[n].key, sizeof(cloud_facts[n].key), "%s", key);
	snprintf(cloud_facts[n].value, sizeof(cloud_facts[n].value), "%s", value);
	store_release(&n_facts, n + 1);
}

int weft__cloud_known(void)
{
	return load_acquire(&n_facts) > 0;
}

static void put_facts(struct weft__defs *defs)
{
	uint32_t n = load_acquire(&n_facts), i;

	for (i = 0; i < n; i++)
		weft__defs_fact(defs, cloud_facts[i].key, cloud_facts[i].value);
}

const struct weft__source weft__cloud_source = {
	.name = "cloud",
	.what = "facts of the cloud",
	.facts_change = 1,
	.facts = put_facts,
};
