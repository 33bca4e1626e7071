/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"

#include "weft_test.h"

#define LOW(tick) ((tick) & ((UINT64_C(1) << 56) - 1))

static struct weft__timeline line_of(uint64_t tick0, uint64_t mono0, uint64_t tick1, uint64_t mono1)
{
	struct weft__timeline line = {.source = WEFT__TICK_COUNTER};
	struct weft_clock a = {tick0, mono0, 0}, b = {tick1, mono1, 0};

	weft__timeline_set(&line, &a, &b);
	return line;
}

TEST(readings_convert_to_themselves)
{
	struct weft__timeline line = line_of(1000, 5000000, 4001000, 6000000);

	CHECK_EQ(weft__timeline_mono(&line, 4001000), 6000000);
	CHECK_EQ(weft__timeline_mono(&line, 1000), 5000000);
	CHECK_EQ(weft__timeline_mono(&line, 2001000), 5500000);
	CHECK_EQ(weft__timeline_mono(&line, 8001000), 7000000);
}

TEST(a_later_tick_never_becomes_an_earlier_time)
{
	struct weft__timeline line = line_of(123456789, 1000000007, 987654321987, 412345678901);
	uint64_t before = 0, tick, ns;

	for (tick = line.last.tick - 2000000; tick < line.last.tick + 2000000; tick += 7) {
		ns = weft__timeline_mono(&line, LOW(tick));
		if (!CHECK(ns >= before))
			break;
		before = ns;
	}
}

/* A slot keeps 56 bits of a tick; the rest is that of the last reading, on either side of a wrap. */
TEST(ticks_wrap_at_56_bits)
{
	static const uint64_t tops[] = {1, 2, 17, 255};
	size_t i;

	for (i = 0; i < sizeof(tops) / sizeof(tops[0]); i++) {
		uint64_t wrap = tops[i] << 56, mono = UINT64_C(1) << 60;
		struct weft__timeline below = line_of(wrap - 2000, mono - 2000, wrap - 1000, mono - 1000);
		struct weft__timeline above = line_of(wrap - 1000, mono - 1000, wrap + 1000, mono + 1000);

		CHECK_EQ(weft__timeline_mono(&below, LOW(wrap - 1)), mono - 1);
		CHECK_EQ(weft__timeline_mono(&below, LOW(wrap)), mono);
		CHECK_EQ(weft__timeline_mono(&below, LOW(wrap + 5)), mono + 5);
		CHECK_EQ(weft__timeline_mono(&above, LOW(wrap - 5)), mono - 5);
		CHECK_EQ(weft__timeline_mono(&above, LOW(wrap + 5000)), mono + 5000);
	}
}

TEST(readings_that_are_too_close_are_not_taken)
{
	struct weft__timeline line = line_of(0, 0, 1000, 1000);
	struct weft_clock soon = {2000, 49001000, 0}, later = {3000, 51001000, 0}, back = {2000, 200000000, 0};

	weft__timeline_add(&line, &soon);
	CHECK_EQ(line.last.tick, 1000);
	weft__timeline_add(&line, &later);
	CHECK_EQ(line.last.tick, 3000);
	CHECK_EQ(line.before.tick, 1000);
	weft__timeline_add(&line, &back); /* a tick that goes back */
	CHECK_EQ(line.last.tick, 3000);
}

TEST(equal_readings_have_a_slope_of_one)
{
	struct weft__timeline line = line_of(50, 70, 50, 70);

	CHECK_EQ(weft__timeline_mono(&line, 60), 80);
	CHECK_EQ(weft__timeline_mono(&line, 40), 60);
}

/* Against the fraction itself, on slopes from a fast counter to one that is too coarse for the fixed point. */
TEST(conversion_is_right_for_a_day)
{
	static const uint64_t ticks_per_s[] = {4999999999, 2649999937, 1000000000, 24000000, 10000001, 9999999, 32768};
	const uint64_t day = 86400, tick1 = UINT64_C(1) << 54, mono1 = UINT64_C(1) << 60;
	size_t i;
	int64_t s;

	for (i = 0; i < sizeof(ticks_per_s) / sizeof(ticks_per_s[0]); i++) {
		uint64_t hz = ticks_per_s[i];
		struct weft__timeline line = line_of(tick1 - hz, mono1 - 1000000000, tick1, mono1);

		CHECK_EQ(line.scale == 0, hz < 10000000);
		for (s = -(int64_t)day; s <= (int64_t)day; s += 997) {
			int64_t off = s * (int64_t)hz + s % 1000;
			int64_t ns = (int64_t)((__int128)off * 1000000000 / (int64_t)hz);
			int64_t got = (int64_t)(weft__timeline_mono(&line, LOW(tick1 + (uint64_t)off)) - mono1);

			if (!CHECK(got >= ns - 2 && got <= ns + 2))
				break;
		}
	}
}

/* From a torn ring file any readings may come: the answer may be nonsense, the conversion is defined. UBSan watches. */
TEST(nonsense_readings_convert_to_something)
{
	struct weft__timeline steep = line_of(0, 0, 1, UINT64_MAX);
	struct weft__timeline flat = line_of(0, UINT64_MAX - 1, UINT64_MAX, UINT64_MAX);

	weft__timeline_mono(&steep, 0);
	weft__timeline_mono(&steep, LOW(UINT64_MAX));
	weft__timeline_mono(&steep, UINT64_C(1) << 55);
	CHECK_EQ(weft__timeline_mono(&flat, LOW(UINT64_MAX)), UINT64_MAX);
	weft__timeline_mono(&flat, UINT64_C(1) << 55);
}

TEST(real_readings_are_close)
{
	const char *why;
	enum weft__tick_source source = weft__clock_source(&why);
	struct weft__timeline line;
	uint64_t before, tick, after, ns;
	int i;

	CHECK(why != NULL);
	weft__timeline_init(&line, source);
	for (i = 0; i < 100; i++) {
		before = weft__clock_mono();
		tick = weft__clock_tick(source);
		after = weft__clock_mono();
		ns = weft__timeline_mono(&line, LOW(tick));
		/* A slope from 2 ms is right to a thousandth or so; 100 readings take far less than 10 ms unless
		 * preempted. */
		CHECK(ns + 2000000 > before && ns < after + 2000000);
	}
	CHECK(weft__clock_real() > UINT64_C(1600000000) * 1000000000);
}
