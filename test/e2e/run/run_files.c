/* SPDX-License-Identifier: Apache-2.0 */
/* As daemons do: closes whatever is open, by close, closefrom and close_range, and opens files of its own. Their
 * numbers must be what they always are, and nobody else may write to them. Usage: run_files DIR */
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "times.h"

#define FILES 40

static int one_round(const char *dir, int round)
{
	char path[4096];
	struct stat st;
	int i, fd, bad = 0;

	if (round == 0)
		for (i = 3; i < 5000; i++)
			close(i);
	else if (round == 1)
		closefrom(3);
	else
		close_range(3, ~0U, 0);
	for (i = 0; i < FILES; i++) {
		snprintf(path, sizeof(path), "%s/%d", dir, i);
		fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
		if (fd != 3 + i && bad++ == 0)
			printf("round %d: file %d got descriptor %d\n", round, i, fd);
	}
	spin(600 * MS); /* the collector drains every quarter of a second */
	for (i = 0; i < FILES; i++)
		if (fstat(3 + i, &st) < 0 || st.st_size != 0) {
			printf("round %d: somebody wrote to descriptor %d\n", round, 3 + i);
			bad++;
		}
	return bad;
}

int main(int argc, char **argv)
{
	int bad = 0, round;

	for (round = 0; round < 3; round++)
		bad += one_round(argc > 1 ? argv[1] : ".", round);
	puts(bad ? "bad" : "good");
	return bad != 0;
}
