/* SPDX-License-Identifier: Apache-2.0 */
/* Alternate stacks of all sizes that the kernel takes. For run_altstack.sh: prints the same with and without weft,
 * and does not die. */
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define GUARD 8192

static size_t size;
static volatile sig_atomic_t handled;

static void burn_ms(long ms)
{
	struct timespec begin, t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
	do
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	while ((t.tv_sec - begin.tv_sec) * 1000 + (t.tv_nsec - begin.tv_nsec) / 1000000 < ms);
}

static void on_signal(int number)
{
	stack_t now;

	(void)number;
	burn_ms(150);
	handled += sigaltstack(NULL, &now) == 0 && (now.ss_flags & SS_ONSTACK) && now.ss_size == size;
}

/* What lies below a stack stays as it was. */
static int is_clean(const unsigned char *at)
{
	for (size_t i = 0; i < GUARD; i++)
		if (at[i] != 0x5a)
			return 0;
	return 1;
}

static void *try_size(void *data)
{
	unsigned char *memory = malloc(GUARD + size);
	stack_t mine = {.ss_sp = memory + GUARD, .ss_size = size}, now, off = {.ss_flags = SS_DISABLE}, small = mine;
	int r, told, was, bare;

	memset(memory, 0x5a, GUARD + size);
	r = sigaltstack(&mine, NULL);
	told = sigaltstack(NULL, &now) == 0 && now.ss_sp == mine.ss_sp && now.ss_size == size && now.ss_flags == 0;
	burn_ms(60);
	if (data)
		raise(SIGUSR1);
	small.ss_size = 1000;
	printf("%zu: set %d, told %d, too small %d, ", size, r, told, sigaltstack(&small, NULL));
	was = sigaltstack(&off, &now) == 0 && now.ss_sp == mine.ss_sp && now.ss_size == size;
	told = sigaltstack(NULL, &now) == 0 && now.ss_flags == SS_DISABLE;
	bare = (int)syscall(SYS_sigaltstack, &mine, NULL);
	burn_ms(20);
	printf("was %d, off %d, bare %d, clean %d\n", was, told, bare, data || is_clean(memory));
	return NULL; /* with the stack still set */
}

static void in_thread(size_t bytes, void *data)
{
	pthread_t thread;

	size = bytes;
	if (pthread_create(&thread, NULL, try_size, data) == 0)
		pthread_join(thread, NULL);
}

int main(void)
{
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};
	static const size_t sizes[] = {2048, 3072, 4096, 6000, 8192, 16384, 65536};

	sigaction(SIGUSR1, &action, NULL);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		in_thread(sizes[i], NULL);
	in_thread(4096, on_signal); /* there is room for one signal and 400 bytes */
	in_thread(8192, on_signal);
	size = 2048;
	try_size(NULL);
	printf("handled %d\n", (int)handled);
	return 0;
}
