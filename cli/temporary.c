/* SPDX-License-Identifier: Apache-2.0 */
/* Whoever can rename what is in TMPDIR can put something else in the place of a directory there. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"

/* Whether it is a user of this namespace: one who is not is shown as nobody, as is the root outside of it. */
static bool is_mapped(uid_t uid)
{
	FILE *map = fopen("/proc/self/uid_map", "re");
	unsigned long long first, outside, n;
	bool mapped = !map;

	while (map && fscanf(map, "%llu %llu %llu", &first, &outside, &n) == 3)
		mapped |= uid >= first && uid - first < n;
	if (map)
		fclose(map);
	return mapped;
}

bool cli_temporary_safe(int dir, const char *path, char *why, size_t bytes)
{
	struct stat st;

	if (fstat(dir, &st) < 0)
		snprintf(why, bytes, "%s; ", strerror(errno));
	else if (st.st_uid != 0 && st.st_uid != geteuid() && is_mapped(st.st_uid))
		snprintf(why, bytes, "it belongs to user %u, who could replace it; ", (unsigned)st.st_uid);
	else if ((st.st_mode & (S_IWGRP | S_IWOTH)) && !(st.st_mode & S_ISVTX))
		snprintf(why, bytes, "others may write to it (mode %04o) and could replace it; run: chmod +t '%s', ",
			 (unsigned)st.st_mode & 07777, path);
	else
		return true;
	return false;
}
