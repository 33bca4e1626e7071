/* SPDX-License-Identifier: Apache-2.0 */
#include "ship/host.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ship/cloud.h"

/* Facts that were found, and where they go. */
struct found {
	weft__host_fn *fn;
	void *data;
	int n;
};

static void add_text(struct found *found, const char *key, const char *value)
{
	if (!value || !*value || strlen(value) > 1000)
		return;
	found->fn(key, value, found->data);
	found->n++;
}

static void add_member(struct found *found, const char *key, json_t *object, const char *member)
{
	add_text(found, key, json_string_value(json_object_get(object, member)));
}

/* arn:aws:ecs:REGION:ACCOUNT:task/CLUSTER/ID */
static void add_arn(struct found *found, const char *arn)
{
	char region[64] = "", account[32] = "";

	if (!arn || sscanf(arn, "arn:%*[^:]:ecs:%63[^:]:%31[^:]:", region, account) != 2)
		return;
	add_text(found, "cloud.region", region);
	add_text(found, "cloud.account.id", account);
}

/* Limits are numbers of CPUs and of MiB. */
static void add_limit(struct found *found, const char *key, json_t *limits, const char *member)
{
	json_t *value = json_object_get(limits, member);
	char text[32];

	if (!json_is_number(value))
		return;
	snprintf(text, sizeof(text), "%g", json_number_value(value));
	add_text(found, key, text);
}

int weft__host_ecs(const char *text, weft__host_fn *fn, void *data)
{
	struct found found = {fn, data, 0};
	json_t *root = json_loads(text, 0, NULL), *limits;
	const char *arn = json_string_value(json_object_get(root, "TaskARN"));

	if (arn) {
		add_text(&found, "cloud.provider", "aws");
		add_text(&found, "cloud.platform", "aws_ecs");
		add_text(&found, "aws.ecs.task.arn", arn);
		add_member(&found, "aws.ecs.cluster.arn", root, "Cluster");
		add_member(&found, "aws.ecs.task.family", root, "Family");
		add_member(&found, "aws.ecs.task.revision", root, "Revision");
		add_member(&found, "aws.ecs.launchtype", root, "LaunchType");
		add_member(&found, "cloud.availability_zone", root, "AvailabilityZone");
		add_arn(&found, arn);
		limits = json_object_get(root, "Limits");
		add_limit(&found, "aws.ecs.task.cpus", limits, "CPU");
		add_limit(&found, "aws.ecs.task.memory_mib", limits, "Memory");
	}
	json_decref(root);
	return found.n;
}

int weft__host_ec2(const char *text, weft__host_fn *fn, void *data)
{
	struct found found = {fn, data, 0};
	json_t *root = json_loads(text, 0, NULL);

	if (json_string_value(json_object_get(root, "instanceId"))) {
		add_text(&found, "cloud.provider", "aws");
		add_text(&found, "cloud.platform", "aws_ec2");
		add_member(&found, "host.id", root, "instanceId");
		add_member(&found, "host.type", root, "instanceType");
		add_member(&found, "host.image.id", root, "imageId");
		add_member(&found, "cloud.region", root, "region");
		add_member(&found, "cloud.availability_zone", root, "availabilityZone");
		add_member(&found, "cloud.account.id", root, "accountId");
	}
	json_decref(root);
	return found.n;
}

int weft__host_facts(struct weft__http *http, weft__host_fn *fn, void *data)
{
	const char *ecs = getenv("ECS_CONTAINER_METADATA_URI_V4");
	struct weft__buf body = {0};
	struct weft_error err = {0};
	char url[600];
	int n = 0, r = -ENODEV;

	if (ecs && *ecs) {
		snprintf(url, sizeof(url), "%.580s/task", ecs);
		r = weft__cloud_get(http, url, NULL, &body, &err);
		n = r ? 0 : weft__host_ecs((const char *)body.bytes, fn, data);
		weft__buf_free(&body);
	}
	if (r == -ECANCELED || n)
		return n ? n : r;
	r = weft__cloud_imds(http, "latest/dynamic/instance-identity/document", &body, &err);
	n = r ? 0 : weft__host_ec2((const char *)body.bytes, fn, data);
	weft__buf_free(&body);
	return r == -ECANCELED ? r : n;
}
