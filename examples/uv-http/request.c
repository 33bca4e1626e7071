/* SPDX-License-Identifier: Apache-2.0 */
/* What the server does for a path. Each but the first is a mistake that people make with event loops. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "http.h"

#define MS 1000000

static uv_idle_t hog;
static int hog_turns;

/* On the CPU, which is what counts beside other programs. */
__attribute__((noinline)) static unsigned int hash_bytes(int ms)
{
	struct timespec at;
	clock_t end;
	unsigned int sum = 1, i;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &at);
	end = at.tv_sec * 1000 + at.tv_nsec / MS + ms;
	do {
		for (i = 0; i < 20000; i++)
			sum = sum * 31 + i;
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &at);
	} while (at.tv_sec * 1000 + at.tv_nsec / MS < end);
	return sum;
}

/* In a system call. */
__attribute__((noinline)) static void read_slowly(int ms)
{
	struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * MS};

	nanosleep(&time, NULL);
}

static void answer_sum(struct connection *c, unsigned int sum)
{
	char text[32];

	snprintf(text, sizeof(text), "%08x\n", sum);
	http_answer(c, text);
}

static void resize_image(uv_work_t *work)
{
	(void)work;
	read_slowly(50);
}

static void on_resized(uv_work_t *work, int status)
{
	struct connection *c = work->data;

	(void)status;
	c->busy = 0;
	if (c->closed)
		free(c);
	else
		http_answer(c, "resized\n");
}

/* Runs in every turn of the loop, and leaves little of each to the others. */
static void hog_loop(uv_idle_t *idle)
{
	hash_bytes(5);
	if (--hog_turns <= 0)
		uv_idle_stop(idle);
}

static int start_hog(struct connection *c)
{
	uv_loop_t *loop = c->tcp.loop;

	if (!hog.loop)
		uv_idle_init(loop, &hog);
	hog_turns = 20;
	uv_idle_start(&hog, hog_loop);
	http_answer(c, "hogging\n");
	return 0;
}

static int queue_image(struct connection *c)
{
	c->busy = 1;
	c->work.data = c;
	uv_queue_work(c->tcp.loop, &c->work, resize_image, on_resized);
	return 1;
}

int request_handle(struct connection *c, const char *path)
{
	if (strcmp(path, "/compute") == 0)
		answer_sum(c, hash_bytes(50));
	else if (strcmp(path, "/block") == 0) {
		read_slowly(30);
		http_answer(c, "read\n");
	} else if (strcmp(path, "/hog") == 0)
		return start_hog(c);
	else if (strcmp(path, "/image") == 0)
		return queue_image(c);
	else
		http_answer(c, "hello\n");
	return 0;
}
