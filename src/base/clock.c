/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"

#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#define NS_PER_S UINT64_C(1000000000)

static uint64_t clock_ns(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

uint64_t weft__clock_mono(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

uint64_t weft__clock_real(void)
{
	return clock_ns(CLOCK_REALTIME);
}

#if defined(__x86_64__)
static int kernel_trusts_tsc(void)
{
	static const char *const good[] = {"tsc", "kvm-clock", "hyperv_clocksource_tsc_page"};
	char name[64] = "";
	int fd = open("/sys/devices/system/clocksource/clocksource0/current_clocksource", O_RDONLY | O_CLOEXEC);
	ssize_t n;
	size_t i;

	if (fd < 0)
		return 1; /* no sysfs: the CPU's own word has to do */
	n = read(fd, name, sizeof(name) - 1);
	close(fd);
	name[n > 0 ? n : 0] = 0;
	name[strcspn(name, "\n")] = 0;
	for (i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		if (!strcmp(name, good[i]))
			return 1;
	return 0;
}

enum weft__tick_source weft__clock_source(const char **why)
{
	unsigned a, b, c, d;

	if (!__get_cpuid(0x80000007, &a, &b, &c, &d) || !(d & (1u << 8))) {
		*why = "the CPU's TSC is not invariant: events read CLOCK_MONOTONIC, about 13 ns more each";
		return WEFT__TICK_MONOTONIC;
	}
	if (!kernel_trusts_tsc()) {
		*why = "the kernel does not use the TSC as its clock source: events read CLOCK_MONOTONIC, about 13 ns "
		       "more each";
		return WEFT__TICK_MONOTONIC;
	}
	*why = "";
	return WEFT__TICK_COUNTER;
}

static uint64_t counter(void)
{
	return __builtin_ia32_rdtsc();
}
#elif defined(__aarch64__)
enum weft__tick_source weft__clock_source(const char **why)
{
	*why = "";
	return WEFT__TICK_COUNTER;
}

static uint64_t counter(void)
{
	uint64_t tick;

	__asm__ volatile("isb; mrs %0, cntvct_el0" : "=r"(tick) : : "memory");
	return tick;
}
#else
enum weft__tick_source weft__clock_source(const char **why)
{
	*why = "no cycle counter is known for this CPU: events read CLOCK_MONOTONIC";
	return WEFT__TICK_MONOTONIC;
}

static uint64_t counter(void)
{
	return weft__clock_mono();
}
#endif

const char *weft__clock_source_name(enum weft__tick_source source)
{
	if (source == WEFT__TICK_MONOTONIC)
		return "monotonic";
#if defined(__aarch64__)
	return "cntvct";
#else
	return "tsc";
#endif
}

uint64_t weft__clock_tick(enum weft__tick_source source)
{
	return source == WEFT__TICK_COUNTER ? counter() : weft__clock_mono();
}

struct weft_clock weft__clock_read(enum weft__tick_source source)
{
	struct weft_clock best = {0, 0, 0};
	uint64_t width = UINT64_MAX;
	int i;

	/* The narrowest of a few brackets: a preemption between two reads must not bend the timeline. */
	for (i = 0; i < 4; i++) {
		uint64_t before = weft__clock_tick(source);
		uint64_t mono = weft__clock_mono();
		uint64_t after = weft__clock_tick(source);
		uint64_t real = weft__clock_real();

		if (after - before < width) {
			width = after - before;
			best.tick = source == WEFT__TICK_COUNTER ? before + width / 2 : mono;
			best.mono_ns = mono;
			best.real_ns = real;
		}
	}
	return best;
}

void weft__timeline_set(struct weft__timeline *line, const struct weft_clock *a, const struct weft_clock *b)
{
	struct weft_clock from = *a; /* may be line->last */

	line->before = from;
	line->last = *b;
	if (b->tick > from.tick && b->mono_ns > from.mono_ns)
		line->ns_per_tick = (double)(b->mono_ns - from.mono_ns) / (double)(b->tick - from.tick);
	else
		line->ns_per_tick = 1;
	line->scale = line->ns_per_tick <= SCALE_MAX_NS
			      ? (int64_t)(line->ns_per_tick * (double)(INT64_C(1) << SCALE_BITS) + 0.5)
			      : 0;
}

void weft__timeline_init(struct weft__timeline *line, enum weft__tick_source source)
{
	struct weft_clock first = weft__clock_read(source);
	struct weft_clock second = first;
	struct timespec pause = {0, 2000000};

	line->source = source;
	if (source == WEFT__TICK_COUNTER) {
		nanosleep(&pause, NULL);
		second = weft__clock_read(source);
	}
	weft__timeline_set(line, &first, &second);
}

void weft__timeline_add(struct weft__timeline *line, const struct weft_clock *now)
{
	if (!weft__timeline_due(line, now->mono_ns) || now->tick <= line->last.tick)
		return;
	weft__timeline_set(line, &line->last, now);
}
