/* SPDX-License-Identifier: Apache-2.0 */
/* What Kubernetes and control groups say of the container: variables of the downward API by the names that are usual,
 * and limits of CPU and memory. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "record/host/facts.h"

#define ROOT "/sys/fs/cgroup"
#define NAMESPACE "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

static int read_line(const char *path, char *to, size_t bytes)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, to, bytes - 1);

	if (fd >= 0)
		close(fd);
	to[n > 0 ? n : 0] = 0;
	to[strcspn(to, "\n")] = 0;
	return to[0] != 0;
}

/* The first of two variables that is set. */
static const char *either(const char *one, const char *other)
{
	const char *value = getenv(one);

	if (!value || !*value)
		value = getenv(other);
	return value && *value ? value : NULL;
}

static void add(struct weft__defs *defs, const char *key, const char *value)
{
	if (value && strlen(value) < 1000)
		weft__defs_fact(defs, key, value);
}

static void facts_kubernetes(struct weft__defs *defs)
{
	const char *pod = either("POD_NAME", "K8S_POD_NAME"), *space = either("POD_NAMESPACE", "K8S_NAMESPACE_NAME");
	char text[300];

	if (!getenv("KUBERNETES_SERVICE_HOST") && !pod)
		return;
	if (!space && read_line(NAMESPACE, text, sizeof(text)))
		space = text;
	add(defs, "k8s.pod.name", pod ? pod : getenv("HOSTNAME"));
	add(defs, "k8s.namespace.name", space);
	add(defs, "k8s.pod.uid", either("POD_UID", "K8S_POD_UID"));
	add(defs, "k8s.node.name", either("NODE_NAME", "K8S_NODE_NAME"));
	add(defs, "k8s.container.name", either("CONTAINER_NAME", "K8S_CONTAINER_NAME"));
}

/* A file of this process' group: where the whole tree is mounted, or just its own. */
static int read_group(const char *file, char *to, size_t bytes)
{
	char line[512], path[600];
	const char *group;

	if (!read_line("/proc/self/cgroup", line, sizeof(line)))
		return 0;
	group = strncmp(line, "0::", 3) ? "" : line + 3;
	snprintf(path, sizeof(path), ROOT "%.500s/%s", strcmp(group, "/") ? group : "", file);
	if (read_line(path, to, bytes))
		return 1;
	snprintf(path, sizeof(path), ROOT "/%s", file);
	return read_line(path, to, bytes);
}

/* "50000 100000" is half a CPU. */
static void facts_limits(struct weft__defs *defs)
{
	char text[64], cpus[32];
	uint64_t quota, period;

	if (read_group("cpu.max", text, sizeof(text)) && sscanf(text, "%" SCNu64 " %" SCNu64, &quota, &period) == 2 &&
	    period) {
		snprintf(cpus, sizeof(cpus), "%.3g", (double)quota / (double)period);
		weft__defs_fact(defs, "container.cpu_limit", cpus);
	}
	if (read_group("memory.max", text, sizeof(text)) && strcmp(text, "max") != 0)
		weft__defs_fact(defs, "container.memory_limit", text);
}

void weft__facts_container(struct weft__defs *defs)
{
	facts_kubernetes(defs);
	facts_limits(defs);
}
