/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol/debuginfod.h"

#include <dlfcn.h>
#include <elfutils/debuginfod.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define REFUSED_MAX 3 /* each may cost a timeout of 90 s */

static int begin(struct weft__debuginfod *servers)
{
	const char *urls = getenv(DEBUGINFOD_URLS_ENV_VAR);
	debuginfod_client *(*client_begin)(void);

	if (servers->client)
		return 0;
	if (servers->off || !urls || !urls[strspn(urls, " \t")])
		return -ENOTSUP;
	servers->off = 1;
	servers->library = dlopen(DEBUGINFOD_SONAME, RTLD_NOW | RTLD_LOCAL);
	if (!servers->library)
		return -ENOTSUP;
	*(void **)&client_begin = dlsym(servers->library, "debuginfod_begin");
	servers->client = client_begin ? client_begin() : NULL;
	if (!servers->client)
		return -ENOTSUP;
	servers->off = 0;
	return 0;
}

int weft__debuginfod_get(struct weft__debuginfod *servers, enum weft__debuginfod_what what, const uint8_t *build_id,
			 uint32_t n)
{
	int (*find)(debuginfod_client *, const unsigned char *, int, char **);
	int fd = begin(servers);

	if (fd < 0)
		return fd;
	if (servers->off)
		return -ENOTSUP;
	*(void **)&find = dlsym(servers->library, what == WEFT__DEBUGINFOD_DEBUG ? "debuginfod_find_debuginfo"
										 : "debuginfod_find_executable");
	if (!find || !n)
		return -ENOTSUP;
	fd = find(servers->client, build_id, (int)n, NULL);
	if (fd < 0 && fd != -ENOENT && ++servers->refused >= REFUSED_MAX)
		servers->off = 1;
	return fd;
}

void weft__debuginfod_fini(struct weft__debuginfod *servers)
{
	void (*end)(debuginfod_client *);

	if (servers->client) {
		*(void **)&end = dlsym(servers->library, "debuginfod_end");
		if (end)
			end(servers->client);
	}
	/* The library stays: curl's own globals do not survive being unloaded. */
	memset(servers, 0, sizeof(*servers));
}
