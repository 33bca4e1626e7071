/* SPDX-License-Identifier: Apache-2.0 */
/* The demo's load generator: options and results. load.h says how it works. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "load.h"

struct options {
	struct load *load;
	uint64_t seed; /* of the faults */
	bool json;
};

static const char usage_text[] =
	"usage: load --port P [--connections C] [--seconds S] [--requests N] [--pipeline D | --rate R]\n"
	"            [--light] [--faults SEED [--fault-every N]] [--json] [--log FILE]\n"
	"\n"
	"Sends requests to the demo server on 127.0.0.1, then prints throughput and latency.\n"
	"  --connections C  default 16, at most 1000\n"
	"  --seconds S      stop after S seconds; default 5, at most 600\n"
	"  --requests N     stop after N requests, if that comes first\n"
	"  --pipeline D     closed loop: requests each connection keeps under way; default 1, at most 64\n"
	"  --rate R         open loop: R requests per second; latency counts from when each was due\n"
	"  --light          only requests that need no task of their own\n"
	"  --faults SEED    mix in requests that hold a worker up: 50 ms computing, 30 ms in a system call, 20 ms for "
	"a lock\n"
	"  --fault-every N  one fault in N requests; default 10000\n"
	"  --json           print one JSON object\n"
	"  --log FILE       write the latencies to FILE, a line of JSON for every 10 ms of CLOCK_MONOTONIC\n"
	"Exit status: 0 all answered, 1 some were not or with an error, 2 wrong use or no server.\n";

static uint64_t number_arg(const char *option, const char *text, uint64_t least, uint64_t most)
{
	char *end;
	unsigned long long value = strtoull(text, &end, 10);

	if (*text < '0' || *text > '9' || *end || value < least || value > most) {
		fprintf(stderr, "load: %s: want a number from %llu to %llu, not \"%s\"\n", option,
			(unsigned long long)least, (unsigned long long)most, text);
		exit(2);
	}
	return value;
}

static FILE *open_log(const char *path)
{
	FILE *log = fopen(path, "we");

	if (!log) {
		fprintf(stderr, "load: --log: cannot write %s: %s\n", path, strerror(errno));
		exit(2);
	}
	return log;
}

static void fail_usage(void)
{
	fputs(usage_text, stderr);
	exit(2);
}

static void set_option(struct options *opts, int option, const char *arg)
{
	struct load *load = opts->load;
	struct traffic *traffic = &load->traffic;

	switch (option) {
	case 'p':
		load->port = (uint32_t)number_arg("--port", arg, 1, 65535);
		break;
	case 'c':
		load->n_connections = (uint32_t)number_arg("--connections", arg, 1, CONNECTIONS_MAX);
		break;
	case 's':
		load->max_ns = number_arg("--seconds", arg, 1, 600) * 1000000000u;
		break;
	case 'n':
		load->max_requests = number_arg("--requests", arg, 1, UINT64_MAX);
		break;
	case 'd':
		load->pipeline = (uint32_t)number_arg("--pipeline", arg, 1, UNDER_WAY_MAX);
		break;
	case 'r':
		load->rate = number_arg("--rate", arg, 1, 10000000);
		break;
	case 'l':
		traffic->light = true;
		break;
	case 'f':
		traffic->faults = true;
		opts->seed = number_arg("--faults", arg, 0, UINT64_MAX);
		break;
	case 'e':
		traffic->fault_every = (uint32_t)number_arg("--fault-every", arg, 1, 1000000000);
		break;
	case 'j':
		opts->json = true;
		break;
	case 'o':
		load->log = open_log(arg);
		break;
	case 'h':
		fputs(usage_text, stdout);
		exit(0);
	default:
		fail_usage();
	}
}

static void parse_options(struct options *opts, int argc, char **argv)
{
	static const struct option known[] = {
		{"port", required_argument, NULL, 'p'},
		{"connections", required_argument, NULL, 'c'},
		{"seconds", required_argument, NULL, 's'},
		{"requests", required_argument, NULL, 'n'},
		{"pipeline", required_argument, NULL, 'd'},
		{"rate", required_argument, NULL, 'r'},
		{"light", no_argument, NULL, 'l'},
		{"faults", required_argument, NULL, 'f'},
		{"fault-every", required_argument, NULL, 'e'},
		{"json", no_argument, NULL, 'j'},
		{"log", required_argument, NULL, 'o'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	int option;

	while ((option = getopt_long(argc, argv, "", known, NULL)) != -1)
		set_option(opts, option, optarg);
	if (optind < argc || !opts->load->port)
		fail_usage();
	traffic_init(&opts->load->traffic, opts->seed);
}

static double us(uint64_t ns)
{
	return (double)ns / 1e3;
}

static void print_text(const struct load *load, double seconds)
{
	const struct hist *latency = &load->latency;

	printf("%llu requests in %.2f s: %.0f/s on %u connections; %llu faults, %llu errors, %llu not answered\n",
	       (unsigned long long)load->n_answered, seconds, (double)load->n_answered / seconds, load->n_connections,
	       (unsigned long long)load->traffic.n_faults, (unsigned long long)load->n_errors,
	       (unsigned long long)load->n_lost);
	printf("latency: p50 %.1f us, p99 %.1f us, p99.9 %.1f us, max %.1f us\n", us(hist_quantile(latency, 0.5)),
	       us(hist_quantile(latency, 0.99)), us(hist_quantile(latency, 0.999)), us(latency->max));
}

static void print_json(const struct load *load, double seconds)
{
	const struct hist *latency = &load->latency;

	printf("{\"requests\": %llu, \"seconds\": %.6f, \"rate\": %.1f, \"connections\": %u, \"faults\": %llu, "
	       "\"errors\": %llu, \"lost\": %llu, \"p50_ns\": %llu, \"p99_ns\": %llu, \"p999_ns\": %llu, "
	       "\"max_ns\": %llu}\n",
	       (unsigned long long)load->n_answered, seconds, (double)load->n_answered / seconds, load->n_connections,
	       (unsigned long long)load->traffic.n_faults, (unsigned long long)load->n_errors,
	       (unsigned long long)load->n_lost, (unsigned long long)hist_quantile(latency, 0.5),
	       (unsigned long long)hist_quantile(latency, 0.99), (unsigned long long)hist_quantile(latency, 0.999),
	       (unsigned long long)latency->max);
}

int main(int argc, char **argv)
{
	static struct load load = {
		.n_connections = 16,
		.pipeline = 1,
		.max_requests = UINT64_MAX,
		.max_ns = UINT64_C(5000000000),
		.traffic.fault_every = 10000,
	};
	struct options opts = {.load = &load};
	double seconds;
	int err;

	parse_options(&opts, argc, argv);
	err = load_run(&load);
	if (err < 0) {
		fprintf(stderr, "load: 127.0.0.1:%u: %s; is the server running?\n", load.port, strerror(-err));
		return 2;
	}
	seconds = (double)(load.end_ns - load.begin_ns) / 1e9;
	if (opts.json)
		print_json(&load, seconds);
	else
		print_text(&load, seconds);
	if (load.log && (ferror(load.log) | fclose(load.log))) {
		fprintf(stderr, "load: the log is not whole: %s\n", strerror(errno));
		return 1;
	}
	return load.n_errors || load.n_lost ? 1 : 0;
}
