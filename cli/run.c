/* SPDX-License-Identifier: Apache-2.0 */
#include "run.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli.h"
#include "page.h"
#include "report.h"
#include "weft/recorder.h"

const char cli_run_help[] =
	"usage: weft run [OPTION...] [--] COMMAND [ARGUMENT...]\n"
	"\n"
	"Runs a dynamically linked program as it is and records it: CPU samples of every thread, the ticks of its "
	"event\n"
	"loops (from each return of epoll_wait, poll or select to the next call) as polls, calls in them that "
	"blocked,\n"
	"and what any thread waited for: locks, conditions, semaphores.\n"
	"Its input, output and exit status stay its own. When it has ended, the first page of the report is written to "
	"stderr.\n"
	"\n"
	"  -o DIR            record into DIR and keep it; it is made if it is not there\n"
	"  --keep            record into ./weft-COMMAND-PID and keep it (otherwise: a temporary directory, removed)\n"
	"  --hz N            samples a second of CPU time, of each thread (99)\n"
	"  --no-children     do not record the processes that it starts\n"
	"  --start-after MS  record a process when it has used so much CPU time, or lived and is worth it (50); 0: at "
	"once\n"
	"  --full            the report with all tables, not its first page\n"
	"  --json            the report as JSON\n"
	"  -h, --help\n"
	"\n"
	"environment: WEFT_BLOCK_MS, from how many ms on a wait is recorded by itself (1); WEFT_SAMPLE_ENGINE and the\n"
	"others of the recorder\n"
	"\n"
	"examples:\n"
	"  weft run -- python3 server.py\n"
	"  weft run -o ~/weft --hz 500 -- redis-server --port 7000\n"
	"\n"
	"exit status: that of COMMAND, 128 + N when signal N ended it; 2 wrong usage, 125 weft failed, 126 COMMAND "
	"cannot be\n"
	"run or recorded, 127 there is no COMMAND\n";

struct options {
	const char *dir;
	const char *hz;
	const char *start_after;
	bool keep, no_children, json, full;
};

#define LINGER_TRIES 25 /* of 20 ms */

static volatile pid_t child;
static volatile sig_atomic_t reported; /* to end, by somebody else than the terminal */

static int parse(int argc, char **argv, struct options *opts)
{
	static const struct option longs[] = {
		{"keep", no_argument, NULL, CLI_OPT_KEEP},
		{"hz", required_argument, NULL, CLI_OPT_HZ},
		{"no-children", no_argument, NULL, CLI_OPT_NO_CHILDREN},
		{"start-after", required_argument, NULL, CLI_OPT_START_AFTER},
		{"json", no_argument, NULL, CLI_OPT_JSON},
		{"full", no_argument, NULL, CLI_OPT_FULL},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	const struct cli_options of = {"+ho:", longs, cli_run_help, "no COMMAND given: name the program to run"};
	uint64_t number;
	int code = CLI_OK, c;

	/* What follows the command's name is the command's. */
	while ((c = cli_option(&of, argc, argv, &code)) != -1) {
		switch (c) {
		case 'o':
			opts->dir = optarg;
			break;
		case CLI_OPT_KEEP:
			opts->keep = true;
			break;
		case CLI_OPT_HZ:
			if (!cli_parse_number(optarg, 50000, &number) || number == 0)
				return cli_usage(argv[0], "--hz takes a number from 1 to 50000, not '%s'", optarg);
			opts->hz = optarg;
			break;
		case CLI_OPT_NO_CHILDREN:
			opts->no_children = true;
			break;
		case CLI_OPT_START_AFTER:
			if (!cli_parse_number(optarg, 3600000, &number))
				return cli_usage(argv[0],
						 "--start-after takes milliseconds from 0 to 3600000, not '%s'",
						 optarg);
			opts->start_after = optarg;
			break;
		case CLI_OPT_JSON:
			opts->json = true;
			break;
		case CLI_OPT_FULL:
			opts->full = true;
			break;
		}
	}
	if (code != CLI_OK)
		return code;
	if (opts->dir && !opts->dir[0])
		return cli_usage(argv[0], "-o takes the name of a directory");
	return CLI_OK;
}

/* What the terminal sends, the program gets as well; what another process sends to us is meant for it. */
static void pass_on(int number, siginfo_t *info, void *context)
{
	int saved = errno;

	(void)context;
	if (info->si_code <= 0)
		reported = 1;
	if (child > 0 && info->si_code <= 0)
		kill(child, number);
	errno = saved;
}

static const int passed[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};
#define N_PASSED (sizeof(passed) / sizeof(passed[0]))
static struct sigaction passed_before[N_PASSED];

static void set_environment(const struct options *opts, const char *dir, const char *library)
{
	const char *before = getenv("LD_PRELOAD");
	char *list = NULL;

	if (before && before[0] && asprintf(&list, "%s:%s", before, library) < 0)
		list = NULL;
	setenv("LD_PRELOAD", list ? list : library, 1);
	free(list);
	setenv("WEFT_PRELOAD_DIR", dir, 1);
	run_short_environment(getppid());
	run_ruby_environment();
	setenv("WEFT_PRELOAD_CHILDREN", opts->no_children ? "0" : "1", 1);
	if (opts->hz)
		setenv("WEFT_SAMPLE_HZ", opts->hz, 1);
	if (opts->start_after)
		setenv("WEFT_START_AFTER_MS", opts->start_after, 1);
}

/* A script that does not name its interpreter is the shell's, as everywhere. */
static void exec_script(const char *file, char **argv)
{
	char shell[] = "/bin/sh";
	size_t n = 0;
	char **with;

	while (argv[n])
		n++;
	with = calloc(n + 2, sizeof(*with));
	if (!with)
		return;
	with[0] = shell;
	with[1] = strdup(file);
	if (n > 1)
		memcpy(with + 2, argv + 1, (n - 1) * sizeof(*with));
	if (with[1])
		execv(shell, with);
	free(with[1]);
	free(with);
	errno = ENOEXEC;
}

/* Returns in the parent only: 0 and the child's status, or an exit code. */
static int run_child(const struct options *opts, const char *dir, const char *library, const char *file, char **argv,
		     int *status)
{
	struct sigaction act = {.sa_sigaction = pass_on, .sa_flags = SA_SIGINFO | SA_RESTART}, *old = passed_before;
	sigset_t block, before;
	size_t i;

	sigemptyset(&act.sa_mask);
	sigemptyset(&block);
	for (i = 0; i < N_PASSED; i++)
		sigaddset(&block, passed[i]);
	sigprocmask(SIG_BLOCK, &block, &before);
	for (i = 0; i < N_PASSED; i++)
		sigaction(passed[i], &act, &old[i]);
	child = fork();
	if (child == 0) {
		for (i = 0; i < N_PASSED; i++)
			sigaction(passed[i], &old[i], NULL);
		sigprocmask(SIG_SETMASK, &before, NULL);
		signal(SIGPIPE, cli_sigpipe);
		set_environment(opts, dir, library);
		execv(file, argv);
		if (errno == ENOEXEC)
			exec_script(file, argv);
		cli_fail("cannot run %s: %s", file, strerror(errno));
		_exit(errno == ENOENT ? RUN_NOT_FOUND : RUN_CANNOT);
	}
	sigprocmask(SIG_SETMASK, &before, NULL);
	if (child < 0) {
		cli_fail("cannot start a process: %s", strerror(errno));
		return RUN_FAILED;
	}
	while (waitpid(child, status, 0) < 0)
		if (errno != EINTR) {
			cli_fail("cannot wait for %s: %s", file, strerror(errno));
			return RUN_FAILED;
		}
	page_origin.pid = (uint64_t)child;
	page_origin.status = *status;
	child = 0;
	return 0;
}

/* A program that was killed, or called _exit, did not seal its segment. What it has started may be just about to
 * end. */
static void recover_all(const struct run_dir *dir)
{
	struct timespec nap = {0, 20000000};
	struct weft_error err = {0};
	char pids[64];
	int i;

	for (i = 0; i < LINGER_TRIES; i++) {
		if (weft_recover(dir->path, NULL, NULL, &err) < 0)
			cli_warn("cannot recover in %s: %s", dir->path, err.msg);
		if (run_dir_still(dir, pids, sizeof(pids)) == 0)
			return;
		nanosleep(&nap, NULL);
	}
}

/* To stderr: stdout is the program's. */
static int report(const struct options *opts, struct run_dir *dir)
{
	char name[] = "weft report", json[] = "--json", full[] = "--full", plain[] = "--no-pager";
	char *args[] = {name, plain, opts->json ? json : opts->full ? full : plain, dir->path, NULL};

	recover_all(dir);
	if (!run_dir_has(dir, ".weft") && !run_short_any(dir)) {
		const char *flight = getenv("WEFT_FLIGHT_SECONDS");

		if (flight && *flight)
			cli_warn("no dump was written: with WEFT_FLIGHT_SECONDS one is when a poll takes "
				 "WEFT_TRIGGER_POLL_MS or the signal WEFT_TRIGGER_SIGNAL comes");
		else
			cli_warn("nothing was recorded: there was no sample, no event loop and no wait, or the reason "
				 "is above");
		return CLI_OK;
	}
	optind = 0;
	page_origin.removed = !opts->dir && !opts->keep;
	return dup2(STDERR_FILENO, STDOUT_FILENO) < 0 ? CLI_FAILED : cli_report(4, args);
}

/* Who ends a program may send a signal more than once, or to all of its group: that is not meant for the report. But
 * a person at the terminal may have enough of it. */
static void mind_signals(void)
{
	size_t i;

	for (i = 0; i < N_PASSED; i++)
		if (reported)
			signal(passed[i], SIG_IGN);
		else
			sigaction(passed[i], &passed_before[i], NULL);
}

/* Nothing was recorded and nothing is to be recovered: the report is a line or two. */
static bool is_short_only(const struct run_dir *dir)
{
	return run_short_any(dir) && !run_dir_has(dir, ".weft") && !run_dir_has(dir, ".weft.active") &&
	       !run_dir_has(dir, ".rings");
}

/* In a process of its own: whatever becomes of the report, a closed pipe for one, the exit status is the program's.
 * This one stays deaf, to remove what is to be removed. */
static void report_apart(const struct options *opts, struct run_dir *dir)
{
	pid_t pid;
	int code;

	if (!run_dir_same(dir)) {
		cli_warn("no report: somebody moved or replaced %s meanwhile", dir->path);
		return;
	}
	fflush(stdout);
	if (is_short_only(dir)) { /* not worth a process */
		signal(SIGPIPE, SIG_IGN);
		report(opts, dir);
		fflush(stdout);
		__fpurge(stdout); /* what nobody reads does not matter */
		clearerr(stdout);
		return;
	}
	pid = fork();
	if (pid == 0) {
		mind_signals();
		code = report(opts, dir);
		fflush(stdout);
		_exit(code);
	}
	if (pid < 0)
		cli_warn("cannot report: %s", strerror(errno));
	while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

int cli_run(int argc, char **argv)
{
	struct options opts = {0};
	struct run_dir dir;
	char file[PATH_MAX], library[PATH_MAX], pids[160];
	int code = parse(argc, argv, &opts), status = 0;
	char **command = argv + optind;

	if (code != CLI_OK)
		return code < 0 ? CLI_OK : code;
	code = run_find(command[0], file);
	if (code == 0)
		code = run_find_library(library);
	if (code != 0)
		return code;
	if (run_dir_make(&dir, opts.dir, opts.keep ? cli_base(command[0]) : NULL) != CLI_OK)
		return RUN_FAILED;
	run_short_open(&dir);
	code = run_child(&opts, dir.path, library, file, command, &status);
	run_short_close(&dir);
	if (code == 0) {
		report_apart(&opts, &dir);
		code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
	}
	if (run_dir_still(&dir, pids, sizeof(pids)))
		fprintf(stderr,
			"\nweft: processes that it has started still run and are recorded: %s; when they have ended, "
			"weft recover %s and weft report %s have the rest\n",
			pids, dir.path, dir.path);
	else if ((opts.dir || opts.keep) && !run_dir_has(&dir, ".weft"))
		fprintf(stderr, "\nweft: no recording is in %s; the reason is above\n", dir.path);
	else if (opts.dir || opts.keep)
		fprintf(stderr, "\nweft: the recording is in %s; look at it in a browser: weft view %s\n", dir.path,
			dir.path);
	else
		run_dir_remove(&dir);
	return code;
}
