/* SPDX-License-Identifier: Apache-2.0 */
#include "traffic.h"

#include <stdio.h>

static uint64_t scramble(uint64_t x)
{
	x ^= x >> 30;
	x *= UINT64_C(0xbf58476d1ce4e5b9);
	x ^= x >> 27;
	x *= UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

/* Faults come one in each stretch of `fault_every` requests, in its middle half, so that no two are close together. */
static void place_fault(struct traffic *traffic)
{
	uint64_t stretch = traffic->n_faults * traffic->fault_every;
	uint64_t half = traffic->fault_every / 2 ? traffic->fault_every / 2 : 1;

	traffic->state = scramble(traffic->state + UINT64_C(0x9e3779b97f4a7c15));
	traffic->next_fault = stretch + traffic->fault_every / 4 + traffic->state % half;
}

void traffic_init(struct traffic *traffic, uint64_t seed)
{
	traffic->state = scramble(seed + 1);
	traffic->n_requests = 0;
	traffic->n_faults = 0;
	place_fault(traffic);
}

static int write_fault(char *request, uint64_t which)
{
	switch (which % 3) {
	case 0:
		return sprintf(request, "COMPUTE 50000\n");
	case 1:
		return sprintf(request, "SLEEP 30000\n");
	default:
		return sprintf(request, "LOCK 20000\n");
	}
}

/* Of 16 requests, on average: 8 pings, 6 echos, 1 lookup and 1 short computation. */
static int write_normal(char *request, uint64_t number, bool light)
{
	static const char text[] = "the quick brown fox jumps over the lazy dog";
	uint64_t random = scramble(number);
	unsigned int pick = (unsigned int)(random >> 32);

	switch (random % 16) {
	case 0:
		if (!light)
			return sprintf(request, "GET key-%u\n", pick % 1000);
		break;
	case 1:
		if (!light)
			return sprintf(request, "COMPUTE %u\n", 10 + pick % 20);
		break;
	case 2:
	case 3:
	case 4:
	case 5:
	case 6:
	case 7:
		return sprintf(request, "ECHO %.*s\n", 8 + (int)(pick % 32), text);
	default:
		break;
	}
	return sprintf(request, "PING %llu\n", (unsigned long long)number);
}

size_t traffic_next(struct traffic *traffic, char *request)
{
	uint64_t number = traffic->n_requests++;

	if (traffic->faults && number >= traffic->next_fault) {
		int n_bytes = write_fault(request, traffic->n_faults++);

		place_fault(traffic);
		return (size_t)n_bytes;
	}
	return (size_t)write_normal(request, number, traffic->light);
}
