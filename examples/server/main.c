/* SPDX-License-Identifier: Apache-2.0 */
/* weft's demo server: options, recording, and an orderly end. server.h has the protocol, runtime.h the event loop. */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <weft/weft.h>

#include "alternate.h"
#include "server.h"

struct options {
	uint32_t port;
	uint32_t workers;
	uint32_t max_connections;
	const char *record_dir;
	bool events;
	bool spans;
	FILE *alternate_log; /* NULL: no alternation */
	uint32_t slice_ms;
	bool samples;
};

static const char usage_text[] =
	"usage: server [--port P] [--workers N] [--max-connections N] [--record DIR] [--events] [--spans]\n"
	"              [--alternate FILE [--slice MS] [--samples]]\n"
	"\n"
	"Serves a line protocol on 127.0.0.1 until SIGINT or SIGTERM.\n"
	"  --port P             port to listen on; 0, the default, takes a free one and prints it\n"
	"  --workers N          worker threads, 1 to 64; default 2\n"
	"  --max-connections N  refuse connections beyond this; default 1000\n"
	"  --record DIR         record with weft into DIR; so does WEFT_DIR=DIR\n"
	"  --events             record an event of the server's own for each request of 1 ms and more\n"
	"  --spans              record for which request each job runs\n"
	"  --alternate FILE     switch recording off and on all the time, and write what was served in each slice of "
	"time\n"
	"                       to FILE; without --record nothing is switched, and FILE shows what chance does\n"
	"  --slice MS           length of such a slice, 20 to 10000; default 100\n"
	"  --samples            switch samples only, and record all the time; for rates above the kernel's tick\n";

static uint32_t number_arg(const char *option, const char *text, uint32_t least, uint32_t most)
{
	char *end;
	unsigned long value = strtoul(text, &end, 10);

	if (*text < '0' || *text > '9' || *end || value < least || value > most) {
		fprintf(stderr, "server: %s: want a number from %u to %u, not \"%s\"\n", option, least, most, text);
		exit(2);
	}
	return (uint32_t)value;
}

static FILE *open_log(const char *path)
{
	FILE *log = fopen(path, "we");

	if (!log) {
		fprintf(stderr, "server: --alternate: cannot write %s: %s\n", path, strerror(errno));
		exit(2);
	}
	return log;
}

static void parse_options(struct options *opts, int argc, char **argv)
{
	static const struct option known[] = {
		{"port", required_argument, NULL, 'p'},
		{"workers", required_argument, NULL, 'w'},
		{"max-connections", required_argument, NULL, 'c'},
		{"record", required_argument, NULL, 'r'},
		{"events", no_argument, NULL, 'e'},
		{"spans", no_argument, NULL, 'S'},
		{"alternate", required_argument, NULL, 'a'},
		{"slice", required_argument, NULL, 's'},
		{"samples", no_argument, NULL, 'm'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	int option;

	while ((option = getopt_long(argc, argv, "", known, NULL)) != -1) {
		switch (option) {
		case 'p':
			opts->port = number_arg("--port", optarg, 0, 65535);
			break;
		case 'w':
			opts->workers = number_arg("--workers", optarg, 1, WORKERS_MAX);
			break;
		case 'c':
			opts->max_connections = number_arg("--max-connections", optarg, 1, 100000);
			break;
		case 'r':
			opts->record_dir = optarg;
			break;
		case 'e':
			opts->events = true;
			break;
		case 'S':
			opts->spans = true;
			break;
		case 'a':
			opts->alternate_log = open_log(optarg);
			break;
		case 's':
			opts->slice_ms = number_arg("--slice", optarg, 20, 10000);
			break;
		case 'm':
			opts->samples = true;
			break;
		case 'h':
			fputs(usage_text, stdout);
			exit(0);
		default:
			fputs(usage_text, stderr);
			exit(2);
		}
	}
	if (optind < argc) {
		fputs(usage_text, stderr);
		exit(2);
	}
}

/* Recording is wanted when --record or WEFT_DIR says so; without, `*rec` is NULL and every weft call does nothing. */
static int record(struct weft_recorder **rec, const char *dir)
{
	struct weft_recorder_opts opts = {.size = sizeof(opts), .dir = dir, .name = "demo-server"};
	struct weft_error err;

	if (weft_recorder_open_env(rec, &opts, &err) < 0 || weft_recorder_start(*rec, &err) < 0) {
		fprintf(stderr, "server: cannot record: %s\n", err.msg);
		return -1;
	}
	return 0;
}

static void define_events(struct server *server)
{
	static const struct weft_field fields[] = {
		{"bytes_in", WEFT_TYPE_U64, "By"},
		{"latency", WEFT_TYPE_U64, "ns"},
		{"ok", WEFT_TYPE_BOOL, NULL},
		{"route", WEFT_TYPE_STRING, NULL},
	};

	server->event_kind = weft_event_define("request", fields, 4, NULL);
	server->route_names[ROUTE_GET] = weft_string("get");
	server->route_names[ROUTE_COMPUTE] = weft_string("compute");
	server->route_names[ROUTE_SLEEP] = weft_string("sleep");
	server->route_names[ROUTE_LOCK] = weft_string("lock");
}

static void define_contexts(struct server *server)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	server->trace = (uint64_t)ts.tv_sec << 32 | (uint64_t)getpid();
	server->endpoints[ROUTE_GET] = weft_endpoint("GET");
	server->endpoints[ROUTE_COMPUTE] = weft_endpoint("COMPUTE");
	server->endpoints[ROUTE_SLEEP] = weft_endpoint("SLEEP");
	server->endpoints[ROUTE_LOCK] = weft_endpoint("LOCK");
}

/* Keeps the connections below the limit of file descriptors, so that accepting never fails for lack of one. */
static uint32_t connection_limit(uint32_t wanted)
{
	const rlim_t others = 64 + 2 * WORKERS_MAX;
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) < 0 || files.rlim_cur == RLIM_INFINITY ||
	    files.rlim_cur >= wanted + others)
		return wanted;
	return files.rlim_cur > others ? (uint32_t)(files.rlim_cur - others) : 1;
}

/* Waits for one of `signals`, which all threads have blocked. */
static int wait_for_end(const struct server *server, const struct options *opts, struct weft_recorder *rec,
			const sigset_t *signals)
{
	struct alternate alternate = {.server = server,
				      .rec = rec,
				      .slice_ms = opts->slice_ms,
				      .samples = opts->samples,
				      .log = opts->alternate_log};
	int sig;
	int err = 0;

	if (alternate.log)
		err = alternate_start(&alternate);
	if (err < 0)
		return err;
	sigwait(signals, &sig);
	return alternate.log ? alternate_stop(&alternate) : 0;
}

static int serve(struct server *server, const struct options *opts, struct weft_recorder *rec, const sigset_t *signals)
{
	struct runtime *rt = &server->runtime;
	int err = runtime_init(rt, opts->workers);

	server->max_connections = connection_limit(opts->max_connections);
	if (err == 0)
		err = listener_open(server, opts->port);
	if (err == 0)
		err = runtime_start(rt);
	if (err == 0) {
		printf("listening on 127.0.0.1:%u\n", server->port);
		fflush(stdout);
		err = wait_for_end(server, opts, rec, signals);
	}
	runtime_stop(rt);
	return err;
}

static double seconds(struct timeval time)
{
	return (double)time.tv_sec + (double)time.tv_usec / 1e6;
}

/* Ends the recording, so that all it cost is in the summary. Returns what weft_recorder_stop did. */
static int print_summary(const struct server *server, struct weft_recorder *rec)
{
	struct weft_recorder_stats stats = {.size = sizeof(stats)};
	struct rusage used;
	int err = weft_recorder_stop(rec, NULL);

	weft_recorder_stats(rec, &stats);
	getrusage(RUSAGE_SELF, &used);
	printf("served %llu requests on %llu connections in %.3f s of CPU",
	       (unsigned long long)runtime_requests(&server->runtime), (unsigned long long)server->accepted,
	       seconds(used.ru_utime) + seconds(used.ru_stime));
	if (rec)
		printf("; recorded %llu events in %llu bytes, lost %llu", (unsigned long long)stats.events,
		       (unsigned long long)stats.bytes, (unsigned long long)stats.lost);
	putchar('\n');
	return err;
}

int main(int argc, char **argv)
{
	static struct server server;
	struct options opts = {.workers = 2, .max_connections = 1000, .slice_ms = 100};
	struct weft_recorder *rec = NULL;
	sigset_t signals;
	int err;

	parse_options(&opts, argc, argv);
	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &signals, NULL);
	if (record(&rec, opts.record_dir) < 0)
		return 1;
	server.event_kind = 0;
	server.read_name = weft_string("read");
	if (opts.events)
		define_events(&server);
	if (opts.spans)
		define_contexts(&server);

	err = cache_init(&server.cache);
	if (err == 0) {
		err = serve(&server, &opts, rec, &signals);
		cache_fini(&server.cache);
	}
	if (err < 0) {
		fprintf(stderr, "server: cannot serve on port %u: %s\n", opts.port, strerror(-err));
		weft_recorder_close(rec, NULL);
		return 1;
	}
	err = print_summary(&server, rec);
	if (err < 0)
		fprintf(stderr, "server: the trace is not whole: %s\n", weft_strerror(err));
	weft_recorder_close(rec, NULL);
	return err < 0;
}
