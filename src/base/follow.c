/* SPDX-License-Identifier: Apache-2.0 */
/* Users and groups belong to threads; it is the C library that gives all of them the same, and it ends the process
 * when one of them may not have what another may. So a program of one thread, which knows of no other, changes its
 * own only, and ours come after. */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/private_fds.h"

#define STATUS_BYTES 16384
#define GROUPS_MAX 1024

uint32_t weft__ids_strayed;

/* The numbers behind `key`, which begins a line; -1: there is no such line, or it is not whole. */
static int status_ids(const char *status, const char *key, uint32_t *ids, int most)
{
	const char *at = strstr(status, key);
	int n = 0;

	if (!at || !strchr(at + 1, '\n'))
		return -1;
	at += strlen(key);
	for (;;) {
		char *end;
		unsigned long id;

		while (*at == ' ' || *at == '\t')
			at++;
		if (*at == '\n')
			return n;
		id = strtoul(at, &end, 10);
		if (end == at || n == most)
			return -1;
		ids[n++] = (uint32_t)id;
		at = end;
	}
}

static ssize_t read_status(char *to, size_t n)
{
	int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	size_t got = 0;
	ssize_t r = -1;

	while (fd >= 0 && got < n && ((r = read(fd, to + got, n - got)) > 0 || (r < 0 && errno == EINTR)))
		got += r > 0 ? (size_t)r : 0;
	if (fd >= 0)
		close(fd);
	return r < 0 ? -1 : (ssize_t)got;
}

void weft__ids_follow(void)
{
	uint32_t ids[4], groups[GROUPS_MAX];
	char status[STATUS_BYTES];
	ssize_t bytes;
	int n;

	__atomic_store_n(&weft__ids_strayed, 0, __ATOMIC_SEQ_CST); /* what changes from here on is seen the next time */
	bytes = read_status(status, sizeof(status) - 1);
	if (bytes < 0)
		return;
	status[bytes] = 0;
	n = status_ids(status, "\nGroups:", groups, GROUPS_MAX);
	if (n >= 0)
		syscall(SYS_setgroups, n, groups);
	if (status_ids(status, "\nGid:", ids, 4) == 4)
		syscall(SYS_setresgid, ids[0], ids[1], ids[2]);
	if (status_ids(status, "\nUid:", ids, 4) == 4)
		syscall(SYS_setresuid, ids[0], ids[1], ids[2]);
}
