/* SPDX-License-Identifier: Apache-2.0 */
/* Long output goes through $PAGER on a terminal. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli.h"
#include "page.h"

static pid_t pager;

void page_through_pager(void)
{
	const char *command = getenv("PAGER");
	int ends[2];

	if (!isatty(STDOUT_FILENO) || (command && !command[0]) || pipe(ends) < 0)
		return;
	cli_style(CLI_PLAIN); /* remembers that this is a terminal */
	fflush(stdout);
	pager = fork();
	if (pager == 0) {
		dup2(ends[0], STDIN_FILENO);
		close(ends[0]);
		close(ends[1]);
		if (command)
			execl("/bin/sh", "sh", "-c", command, (char *)NULL);
		execlp("less", "less", "-R", "-F", "-X", (char *)NULL);
		execlp("cat", "cat", (char *)NULL);
		_exit(127);
	}
	if (pager > 0) {
		dup2(ends[1], STDOUT_FILENO);
		signal(SIGPIPE, SIG_IGN); /* who leaves the pager has seen enough */
	}
	close(ends[0]);
	close(ends[1]);
}

void page_end(void)
{
	if (pager <= 0)
		return;
	fflush(stdout);
	clearerr(stdout);
	close(STDOUT_FILENO);
	while (waitpid(pager, NULL, 0) < 0 && errno == EINTR)
		;
	pager = 0;
	if (!freopen("/dev/null", "w", stdout))
		clearerr(stdout);
}
