/* SPDX-License-Identifier: Apache-2.0 */
/* Quotas and counters of cgroups, from files that the test has planted. */
#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "record/host/throttle.h"
#include "weft_test.h"

#define SECOND UINT64_C(1000000000)

struct planted {
	char dir[64];
	char cgroup[96], mountinfo[96];
};

static void plant(const struct planted *p, const char *file, const char *fmt, ...)
{
	char path[512], *slash;
	va_list args;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", p->dir, file);
	for (slash = path + strlen(p->dir) + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = 0;
		mkdir(path, 0700);
		*slash = '/';
	}
	f = fopen(path, "w");
	if (!CHECK(f != NULL))
		return;
	va_start(args, fmt);
	vfprintf(f, fmt, args);
	va_end(args);
	fclose(f);
}

static void planted_begin(struct planted *p)
{
	strcpy(p->dir, "/tmp/weft-throttle-XXXXXX");
	CHECK(mkdtemp(p->dir) != NULL);
	snprintf(p->cgroup, sizeof(p->cgroup), "%s/cgroup", p->dir);
	snprintf(p->mountinfo, sizeof(p->mountinfo), "%s/mountinfo", p->dir);
}

static void planted_end(struct planted *p)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", p->dir);
	CHECK_EQ(system(command), 0);
}

static bool find(struct weft__throttle *t, const struct planted *p)
{
	return weft__throttle_find(t, p->cgroup, p->mountinfo, SECOND);
}

TEST(a_quota_of_version_2_and_what_it_took)
{
	struct weft__throttle t = {0};
	struct weft__throttled got;
	struct planted p;

	planted_begin(&p);
	plant(&p, "cgroup", "0::/app/web\n");
	plant(&p, "mountinfo",
	      "1 0 8:1 / / rw - ext4 /dev/vda rw\n30 1 0:27 / %s/fs rw,nosuid shared:4 - cgroup2 cgroup2 rw\n", p.dir);
	plant(&p, "fs/app/web/cpu.max", "50000 100000\n");
	plant(&p, "fs/app/web/cpu.stat",
	      "usage_usec 5\nuser_usec 3\nsystem_usec 2\nnr_periods 10\nnr_throttled 4\nthrottled_usec 1000\n");
	plant(&p, "fs/app/web/cpu.pressure",
	      "some avg10=0.00 avg60=0.00 avg300=0.00 total=700\nfull avg10=0 total=1\n");
	CHECK(find(&t, &p));
	CHECK_EQ(t.n_levels, 1);
	CHECK_EQ(t.quota_us, 50000);
	CHECK_EQ(t.period_us, 100000);
	/* What came before is not ours. */
	CHECK(!weft__throttle_read(&t, 2 * SECOND, &got));
	CHECK_EQ(got.span_ns, SECOND);
	plant(&p, "fs/app/web/cpu.stat", "nr_periods 20\nnr_throttled 9\nthrottled_usec 251000\n");
	plant(&p, "fs/app/web/cpu.pressure",
	      "some avg10=0.00 avg60=0.00 avg300=0.00 total=1700\nfull avg10=0 total=1\n");
	/* Looking for quotas again finds the same, and forgets nothing. */
	CHECK(!find(&t, &p));
	CHECK(weft__throttle_read(&t, 3 * SECOND, &got));
	CHECK_EQ(got.span_ns, SECOND);
	CHECK_EQ(got.more.throttled_ns, 250000000);
	CHECK_EQ(got.more.times, 5);
	CHECK_EQ(got.more.periods, 10);
	CHECK_EQ(got.more.pressure_ns, 1000000);
	CHECK(!weft__throttle_read(&t, 4 * SECOND, &got));
	/* The quota is taken away, and set again. */
	plant(&p, "fs/app/web/cpu.max", "max 100000\n");
	CHECK(find(&t, &p));
	CHECK_EQ(t.n_levels, 0);
	CHECK_EQ(t.quota_us, 0);
	CHECK(!weft__throttle_read(&t, 5 * SECOND, &got));
	plant(&p, "fs/app/web/cpu.max", "200000 100000\n");
	CHECK(find(&t, &p));
	CHECK_EQ(t.quota_us, 200000);
	planted_end(&p);
}

TEST(the_quota_of_a_cgroup_above_counts_and_the_tightest_is_recorded)
{
	struct weft__throttle t = {0};
	struct weft__throttled got;
	struct planted p;

	planted_begin(&p);
	plant(&p, "cgroup", "0::/slice/pod/box\n");
	plant(&p, "mountinfo", "30 1 0:27 / %s/f\\040s rw - cgroup2 cgroup2 rw\n", p.dir);
	plant(&p, "f s/slice/pod/box/cpu.max", "max 100000\n");
	plant(&p, "f s/slice/pod/box/cpu.stat", "nr_periods 0\nnr_throttled 0\nthrottled_usec 0\n");
	plant(&p, "f s/slice/pod/cpu.max", "150000 100000\n");
	plant(&p, "f s/slice/pod/cpu.stat", "nr_periods 0\nnr_throttled 0\nthrottled_usec 0\n");
	plant(&p, "f s/slice/cpu.max", "60000 50000\n");
	plant(&p, "f s/slice/cpu.stat", "nr_periods 0\nnr_throttled 0\nthrottled_usec 0\n");
	CHECK(find(&t, &p));
	CHECK_EQ(t.n_levels, 2);
	CHECK_EQ(t.quota_us, 60000);
	plant(&p, "f s/slice/pod/cpu.stat", "nr_periods 5\nnr_throttled 1\nthrottled_usec 3000\n");
	plant(&p, "f s/slice/cpu.stat", "nr_periods 5\nnr_throttled 2\nthrottled_usec 4000\n");
	CHECK(weft__throttle_read(&t, 2 * SECOND, &got));
	CHECK_EQ(got.more.throttled_ns, 7000000);
	CHECK_EQ(got.more.times, 3);
	planted_end(&p);
}

TEST(a_quota_of_version_1)
{
	struct weft__throttle t = {0};
	struct weft__throttled got;
	struct planted p;

	planted_begin(&p);
	plant(&p, "cgroup", "4:memory:/elsewhere\n2:cpu,cpuacct:/jobs/one\n3:cpuset:/\n0::/init.scope\n");
	plant(&p, "mountinfo",
	      "29 1 0:26 / %s/set rw - cgroup cgroup rw,cpuset\n30 1 0:27 / %s/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"
	      "31 1 0:28 / %s/unified rw - cgroup2 cgroup2 rw\n",
	      p.dir, p.dir, p.dir);
	plant(&p, "cpu/jobs/one/cpu.cfs_quota_us", "20000\n");
	plant(&p, "cpu/jobs/one/cpu.cfs_period_us", "100000\n");
	plant(&p, "cpu/jobs/one/cpu.stat", "nr_periods 1\nnr_throttled 1\nthrottled_time 5\nnr_bursts 0\n");
	plant(&p, "cpu/jobs/cpu.cfs_quota_us", "-1\n");
	plant(&p, "cpu/jobs/cpu.cfs_period_us", "100000\n");
	CHECK(find(&t, &p));
	CHECK(t.v1);
	CHECK_EQ(t.n_levels, 1);
	CHECK_EQ(t.quota_us, 20000);
	plant(&p, "cpu/jobs/one/cpu.stat", "nr_periods 9\nnr_throttled 7\nthrottled_time 600000005\nnr_bursts 0\n");
	CHECK(weft__throttle_read(&t, 2 * SECOND, &got));
	CHECK_EQ(got.more.throttled_ns, 600000000);
	CHECK_EQ(got.more.times, 6);
	CHECK_EQ(got.more.pressure_ns, 0);
	planted_end(&p);
}

/* In a cgroup namespace the path is "/", and the files of the container's own cgroup are where the mount is. Without
 * one, the path is that of the host, and only that cgroup is mounted. */
TEST(a_container_finds_its_quota_where_its_cgroup_is_mounted)
{
	struct weft__throttle t = {0};
	struct planted p;

	planted_begin(&p);
	plant(&p, "cgroup", "0::/\n");
	plant(&p, "mountinfo", "30 1 0:27 / %s/fs rw - cgroup2 cgroup rw\n", p.dir);
	plant(&p, "fs/cpu.max", "100000 100000\n");
	plant(&p, "fs/cpu.stat", "nr_periods 0\nnr_throttled 0\nthrottled_usec 0\n");
	CHECK(find(&t, &p));
	CHECK_EQ(t.quota_us, 100000);
	t = (struct weft__throttle){0};
	plant(&p, "cgroup", "0::/docker/0123\n");
	plant(&p, "mountinfo", "30 1 0:27 /docker/0123 %s/fs ro - cgroup2 cgroup rw\n", p.dir);
	CHECK(find(&t, &p));
	CHECK_EQ(t.quota_us, 100000);
	t = (struct weft__throttle){0};
	plant(&p, "cgroup", "0::/../other\n");
	CHECK(!find(&t, &p));
	planted_end(&p);
}

TEST(without_a_quota_or_without_cgroups_there_is_nothing)
{
	struct weft__throttle t = {0};
	struct weft__throttled got;
	struct planted p;

	planted_begin(&p);
	CHECK(!find(&t, &p));
	plant(&p, "cgroup", "nonsense\n0::\n:\n");
	plant(&p, "mountinfo", "30\n30 1 0:27 /\n- - - - - -\n\n%0*d\n30 1 0:27 / %s/fs rw - cgroup2 cgroup2 rw\n",
	      9000, 1, p.dir);
	CHECK(!find(&t, &p));
	plant(&p, "cgroup", "0::/a\n");
	CHECK(!find(&t, &p));
	CHECK_EQ(strlen(t.root), strlen(p.dir) + 3); /* behind a line that is longer than any of a cgroup */
	CHECK_EQ(t.n_levels, 0);
	CHECK(!weft__throttle_read(&t, 2 * SECOND, &got));
	planted_end(&p);
}
