/* SPDX-License-Identifier: Apache-2.0 */
/* A tick of 1 ms of CPU time sleeps; after 400 ms another thread ends the process. What the tick did in that time
 * may be not measured or blocked; it is not CPU time. "busy": two other threads switch all the time, so that the
 * budget is used up. */
/* run: die_exit exit */
/* run: die_sigterm sigterm */
/* run: die_sigsegv sigsegv */
/* run: die_sigkill sigkill */
/* run: die_exit_busy exit busy */
/* run: die_sigterm_busy sigterm busy */
/* run: die_sigsegv_busy sigsegv busy */
/* run: die_sigkill_busy sigkill busy */
/* run: die_raw_sleep raw */
/* run: die_raw_sleep_busy raw busy */
/* run: die_naps naps */
/* run: die_naps_busy naps busy */
/* run: live live */
/* run: live_busy live busy */
#include "truth.h"
#include <pthread.h>
#include <signal.h>

static int there[2], back[2];

static void *pong(void *arg)
{
	char byte;

	while (read(there[0], &byte, 1) == 1 && write(back[1], &byte, 1) == 1)
		;
	return arg;
}

static void *ping(void *arg)
{
	char byte = 0;

	while (write(there[1], &byte, 1) == 1 && read(back[0], &byte, 1) == 1)
		;
	return arg;
}

static void *end(void *arg)
{
	const char *how = (const char *)arg;

	truth_nap(!strcmp(how, "live") ? 1700 * MS : 400 * MS);
	truth_print(); /* while the tick lasts */
	if (!strcmp(how, "live"))
		truth_nap(1000 * MS);
	raise(!strcmp(how, "sigterm")   ? SIGTERM
	      : !strcmp(how, "sigsegv") ? SIGSEGV
	      : !strcmp(how, "sigkill") ? SIGKILL
					: 0);
	_exit(0);
}

int main(int argc, char **argv)
{
	const char *how = argv[1];
	int loop = truth_loop(), tick;
	pthread_t thread;

	if (argc > 2 && (pipe(there) || pipe(back) || pthread_create(&thread, NULL, pong, NULL) ||
			 pthread_create(&thread, NULL, ping, NULL)))
		return 1;
	for (tick = 0; tick < (argc > 2 ? 600 : 3); tick++)
		truth_next(loop);
	struct truth_poll *poll = truth_begin(how);
	poll->open = 1;
	truth_burn(MS);
	poll->end = truth_now();
	truth_note("\"status\": %d, \"live\": %d",
		   !strcmp(how, "sigterm")   ? 128 + SIGTERM
		   : !strcmp(how, "sigsegv") ? 128 + SIGSEGV
		   : !strcmp(how, "sigkill") ? 128 + SIGKILL
					     : 0,
		   !strcmp(how, "live"));
	pthread_create(&thread, NULL, end, argv[1]);
	while (!strcmp(how, "naps")) {
		syscall(SYS_nanosleep, &(struct timespec){0, 3 * MS}, NULL);
		poll->end = truth_now();
	}
	if (!strcmp(how, "raw"))
		syscall(SYS_nanosleep, &(struct timespec){10, 0}, NULL);
	else
		truth_nap(10000 * MS);
	return 1;
}
