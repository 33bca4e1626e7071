/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/names.h"

#include "analyze/label.h"
#include "feed.h"

TEST(wall_time_comes_from_the_nearest_reading)
{
	struct weft__names names = {0};
	struct weft_clock late = {0, 2000, 1002100}, early = {0, 1000, 1001000};

	CHECK_EQ(weft__names_real_ns(&names, 5), 0);
	CHECK_EQ(weft__names_add_clock(&names, &late), 0);
	CHECK_EQ(weft__names_add_clock(&names, &early), 0);
	weft__names_settle(&names);
	CHECK_EQ(weft__names_real_ns(&names, 900), 1000900);
	CHECK_EQ(weft__names_real_ns(&names, 1400), 1001400);
	CHECK_EQ(weft__names_real_ns(&names, 1600), 1001700);
	CHECK_EQ(weft__names_real_ns(&names, 3000), 1003100);
	weft__names_fini(&names);
}

TEST(definitions_replace_and_losses_count_once)
{
	struct weft__names names = {0};
	struct weft_thread thread = {1, 11, WEFT_WORKER_NONE, "old", 5};
	struct weft_loss loss = {WEFT_LOSS_RING_FULL, 1, 3, 10, 20};
	struct weft_fact fact = {"process.pid", "7"};

	CHECK_EQ(weft__names_add_thread(&names, &thread), 0);
	thread.name = "new";
	thread.worker = 4;
	CHECK_EQ(weft__names_add_thread(&names, &thread), 0);
	thread.name = "";
	thread.worker = 5;
	CHECK_EQ(weft__names_add_thread(&names, &thread), 0);
	CHECK_STR(weft__names_thread(&names, 1)->name, "new");
	CHECK_EQ(weft__names_thread(&names, 1)->worker, 4);
	CHECK(weft__names_thread(&names, 2) == NULL);
	CHECK_EQ(weft__names_add_loss(&names, &loss), 0);
	CHECK_EQ(weft__names_add_loss(&names, &loss), 0);
	loss.from_ns = 11;
	CHECK_EQ(weft__names_add_loss(&names, &loss), 0);
	weft__names_settle(&names);
	CHECK_EQ(names.n_losses, 2);
	CHECK_EQ(weft__names_add_fact(&names, &fact), 0);
	fact.value = "8";
	CHECK_EQ(weft__names_add_fact(&names, &fact), 0);
	CHECK_EQ(names.n_facts, 1);
	CHECK_STR(weft__names_fact(&names, "process.pid"), "8");
	weft__names_fini(&names);
}

TEST(labels_name_workers_tasks_and_locations)
{
	struct weft__names names = {0};
	char buf[WEFT__LABEL_BYTES];

	CHECK_EQ(feed_names(&names), 0);
	CHECK_STR(weft__label_lane(&names, 1, 2, buf, sizeof(buf)), "demo/1");
	CHECK_STR(weft__label_lane(&names, WEFT_WORKER_NONE, 3, buf, sizeof(buf)), "io(103)");
	CHECK_STR(weft__label_lane(&names, 9, 3, buf, sizeof(buf)), "worker-9");
	CHECK_STR(weft__label_thread(&names, 77, buf, sizeof(buf)), "thread 77");
	CHECK_STR(weft__label_location(&names, 2), "echo");
	CHECK_STR(weft__label_location(&names, WEFT__LOCATION_UNSEEN), "(spawned before recording)");
	CHECK_STR(weft__label_location(&names, 0), "(unknown)");
	CHECK_STR(weft__label_file(&names, 2, buf, sizeof(buf)), "src/server.c:120");
	CHECK_STR(weft__label_file(&names, WEFT__LOCATION_UNSEEN, buf, sizeof(buf)), "");
	weft__names_fini(&names);
}
