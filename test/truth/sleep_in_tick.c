/* SPDX-License-Identifier: Apache-2.0 */
/* Ticks that sleep. */
/* run: nanosleep nanosleep */
/* run: usleep usleep */
/* run: clock_nanosleep clock_nanosleep */
/* run: poll_as_sleep poll */
/* run: select_as_sleep select */
#include "truth.h"
#include <poll.h>
#include <sys/select.h>

static void doze(const char *how)
{
	struct timespec ts = {0, 6 * MS};
	struct timeval tv = {0, 6000};

	if (!strcmp(how, "usleep"))
		usleep(6000);
	else if (!strcmp(how, "clock_nanosleep"))
		clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, NULL);
	else if (!strcmp(how, "poll"))
		poll(NULL, 0, 6);
	else if (!strcmp(how, "select"))
		select(0, NULL, NULL, NULL, &tv);
	else
		nanosleep(&ts, NULL);
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "nanosleep";
	int loop = truth_loop(), tick;

	for (tick = 0; tick < 10; tick++) {
		truth_next(loop);
		struct truth_poll *poll = truth_begin(how);
		truth_burn(2 * MS);
		doze(how);
		truth_burn(MS);
		truth_end(poll);
	}
	truth_next(loop);
	truth_note("\"waits\": [\"%s\"]", how);
	truth_print();
	return 0;
}
