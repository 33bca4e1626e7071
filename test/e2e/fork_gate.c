/* SPDX-License-Identifier: Apache-2.0 */
/* A program of its own, linked to the shared library: its children, made behind the library's back, find recording
 * off, and their emits leave the parent's rings alone. Argument: the directory. */
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit/record/tally.h"
#include "weft/weft.h"

static int child_of(pid_t pid, int kind)
{
	int status = -1;

	if (pid == 0) {
		int on = weft_recording();

		tally_emit(kind, 1, 1);
		_exit(on);
	}
	waitpid(pid, &status, 0);
	return status;
}

int main(int argc, char **argv)
{
	struct weft_recorder_opts opts = {.size = sizeof(opts)};
	struct weft_error err = {0};
	struct weft_recorder *rec;
	struct tally t;
	int kind = tally_kind(), bad;

	if (argc != 2)
		return 2;
	opts.dir = argv[1];
	if (weft_recorder_open(&rec, &opts, &err) < 0 || weft_recorder_start(rec, &err) < 0) {
		fprintf(stderr, "fork_gate: %s\n", err.msg);
		return 2;
	}
	tally_emit(kind, 0, 1);
	bad = child_of((pid_t)syscall(SYS_fork), kind) || child_of(_Fork(), kind) || child_of(fork(), kind);
	tally_emit(kind, 0, 2);
	if (weft_recorder_close(rec, NULL) < 0)
		bad = 1;
	tally_init(&t, 2);
	tally_dir(&t, argv[1]);
	printf("%llu events of the parent, %llu of its children\n", (unsigned long long)t.sources[0].count,
	       (unsigned long long)t.sources[1].count);
	bad |= t.sources[0].count != 2 || t.sources[1].count != 0 || t.damaged || t.undefined;
	tally_fini(&t);
	return bad;
}
