/* SPDX-License-Identifier: Apache-2.0 */
/* Targets of one process share the profile of a segment: it is made once, as long as it is wanted, and bounded. */
#include "ship/profile_pool.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/atomic.h"
#include "weft_test.h"

static uint32_t n_made, n_alive, n_forgotten, forms_made;
static size_t bytes_made = 10;
static int made_r, at_work;

static int fake_forms(struct weft__bytes out[WEFT__FORMS], uint32_t forms, const char *const *paths, size_t n,
		      const struct weft__export_opts *opts, struct weft_error *err)
{
	uint32_t i;

	CHECK_EQ(n, 1);
	CHECK(paths[0] != NULL && opts->no_debuginfod);
	CHECK_EQ(swap_seq_cst(&at_work, 1), 0); /* one at a time */
	usleep(2000);
	n_made++;
	forms_made = forms;
	for (i = 0; i < WEFT__FORMS && made_r == 0; i++)
		if (forms >> i & 1) {
			out[i] = (struct weft__bytes){.at = weft__calloc(1, bytes_made), .n = bytes_made, .n_rows = 1};
			n_alive++;
		}
	if (made_r)
		snprintf(err->msg, sizeof(err->msg), "no");
	store_seq_cst(&at_work, 0);
	return made_r;
}

static void fake_free(struct weft__bytes *bytes)
{
	n_alive -= bytes->at != NULL;
	weft__free(bytes->at);
	*bytes = (struct weft__bytes){0};
}

static void fake_forget(void)
{
	n_forgotten++;
}

static const struct weft_export_plugin fake = {.forms = fake_forms, .free = fake_free, .forget = fake_forget};

static struct weft__pool_user user_of(uint32_t forms)
{
	return (struct weft__pool_user){.forms = forms, .encoders = &fake};
}

static char dir[64], paths[8][100];
static struct weft__parcel parcels[8];

static void begin(void)
{
	int i;

	snprintf(dir, sizeof(dir), "/tmp/weft-pool-XXXXXX");
	CHECK(mkdtemp(dir) != NULL);
	for (i = 0; i < 8; i++) {
		snprintf(paths[i], sizeof(paths[i]), "%s/%d", dir, i);
		parcels[i] = (struct weft__parcel){.fd = open(paths[i], O_CREAT | O_RDWR, 0600), .path = paths[i]};
		parcels[i].name = paths[i];
		CHECK(parcels[i].fd >= 0);
	}
	n_made = n_alive = n_forgotten = 0;
	bytes_made = 10;
	made_r = 0;
}

static void end(void)
{
	int i;

	for (i = 0; i < 8; i++) {
		close(parcels[i].fd);
		unlink(paths[i]);
	}
	CHECK_EQ(rmdir(dir), 0);
	CHECK_EQ(n_alive, 0);
}

static void give(struct weft__pool_user *user, int parcel, int done)
{
	struct weft_error err = {0};
	struct weft__pooled *one;
	uint32_t i;

	REQUIRE(weft__pool_get(user, &parcels[parcel], &one, &err) == 0);
	for (i = 0; i < WEFT__FORMS; i++)
		CHECK(!(user->forms >> i & 1) || weft__pooled_bytes(one, (enum weft__export_form)i)->n);
	weft__pool_put(user, one, done);
}

TEST(a_profile_is_made_once_for_all_targets_and_freed_when_all_have_it)
{
	struct weft__pool_user a = user_of(1u << WEFT__FORM_PPROF), b = user_of(1u << WEFT__FORM_OTLP);

	begin();
	CHECK_EQ(weft__pool_join(&a), 0);
	CHECK_EQ(weft__pool_join(&b), 0);
	give(&a, 0, 1);
	CHECK_EQ(forms_made, a.forms | b.forms);
	CHECK_EQ(n_alive, 2);
	give(&b, 0, 0); /* it failed, and will be tried again */
	CHECK_EQ(n_alive, 2);
	give(&b, 0, 1);
	CHECK_EQ(n_alive, 0);
	CHECK_EQ(n_made, 1);
	give(&a, 1, 0);
	CHECK_EQ(n_made, 2);
	weft__pool_leave(&a);
	CHECK_EQ(n_forgotten, 0);
	weft__pool_leave(&b);
	CHECK_EQ(n_forgotten, 1);
	end();
}

TEST(a_segment_that_changed_and_a_target_that_came_later_get_new_ones)
{
	struct weft__pool_user a = user_of(1u << WEFT__FORM_PPROF), late = user_of(1u << WEFT__FORM_SERIES);

	begin();
	CHECK_EQ(weft__pool_join(&a), 0);
	give(&a, 0, 0);
	give(&a, 0, 0);
	CHECK_EQ(n_made, 1);
	CHECK_EQ(write(parcels[0].fd, "names", 5), 5);
	give(&a, 0, 0);
	CHECK_EQ(n_made, 2);
	CHECK_EQ(weft__pool_join(&late), 0);
	give(&late, 0, 1);
	CHECK_EQ(n_made, 3);
	weft__pool_leave(&late);
	weft__pool_leave(&a);
	end();
}

TEST(what_waits_for_a_target_that_fails_is_bounded)
{
	struct weft__pool_user a = user_of(1u << WEFT__FORM_PPROF), failing = user_of(1u << WEFT__FORM_PPROF);
	int i;

	begin();
	CHECK_EQ(weft__pool_join(&a), 0);
	CHECK_EQ(weft__pool_join(&failing), 0);
	for (i = 0; i < 8; i++)
		give(&a, i, 1);
	CHECK_EQ(n_alive, 4);
	bytes_made = (size_t)9 << 20;
	CHECK_EQ(ftruncate(parcels[0].fd, 1), 0);
	give(&a, 0, 1);
	CHECK_EQ(n_alive, 0); /* neither it nor the older ones */
	weft__pool_leave(&a);
	weft__pool_leave(&failing);
	end();
}

TEST(a_segment_that_no_profile_can_be_made_of_fails_for_each_and_keeps_nothing)
{
	struct weft__pool_user a = user_of(1u << WEFT__FORM_PPROF);
	struct weft_error err = {0};
	struct weft__pooled *one = NULL;

	begin();
	CHECK_EQ(weft__pool_join(&a), 0);
	made_r = -ENOENT;
	CHECK_EQ(weft__pool_get(&a, &parcels[0], &one, &err), -ENOENT);
	CHECK_STR(err.msg, "no");
	made_r = 0;
	give(&a, 0, 1);
	weft__pool_leave(&a);
	end();
}

static void *take_all(void *data)
{
	struct weft__pool_user *user = data;
	int i;

	for (i = 0; i < 8; i++)
		give(user, i, 1);
	return NULL;
}

TEST(targets_in_threads_of_their_own_share_too)
{
	struct weft__pool_user users[4];
	pthread_t threads[4];
	uint32_t stop = 1;
	struct weft__pool_user stopped = user_of(1);
	struct weft__pooled *one = NULL;
	int i;

	begin();
	for (i = 0; i < 4; i++) {
		users[i] = user_of(1u << i);
		CHECK_EQ(weft__pool_join(&users[i]), 0);
	}
	for (i = 0; i < 4; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, take_all, &users[i]), 0);
	for (i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	CHECK(n_made >= 8 && n_made < 32);
	stopped.stop = &stop;
	CHECK_EQ(weft__pool_join(&stopped), 0);
	CHECK_EQ(weft__pool_get(&stopped, &parcels[0], &one, NULL), -ECANCELED);
	weft__pool_leave(&stopped);
	for (i = 0; i < 4; i++)
		weft__pool_leave(&users[i]);
	end();
}

/* Another thread of the parent may be making one, and a target of the parent is there. */
TEST(a_child_of_fork_begins_anew)
{
	struct weft__pool_user a = user_of(1u << WEFT__FORM_PPROF), own = user_of(1u << WEFT__FORM_OTLP);
	int status = -1;
	pid_t child;

	begin();
	CHECK_EQ(weft__pool_join(&a), 0);
	give(&a, 0, 0);
	child = fork();
	if (!child) {
		n_made = 0;
		CHECK_EQ(weft__pool_join(&own), 0);
		give(&own, 0, 1);
		_exit(n_made == 1 && forms_made == own.forms ? 0 : 1);
	}
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
	weft__pool_leave(&a);
	end();
}
