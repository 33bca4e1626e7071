/* SPDX-License-Identifier: Apache-2.0 */
/* Names of the rust-agent's archives, for each kind of machine. */
#include "ship/bundle.h"

#include "ship/zip.h"
#include "unit/analyze/segfile.h"

#define MS 1000000u

static const char *const (*facts)[2];

static void more(struct weft__defs *defs, const struct segfile *file)
{
	size_t i;

	(void)file;
	for (i = 0; facts[i][0]; i++)
		weft__defs_fact(defs, facts[i][0], facts[i][1]);
}

/* The name of a segment of `ms` milliseconds with these facts. */
static void name_of(const char *const (*of)[2], uint64_t ms, const char *group, char name[BUNDLE_NAME])
{
	static const char *const names[] = {"a.weft", NULL};
	const struct segfile_event events[] = {EV(SEGFILE_MONO, 1, SPAWN, 7, 2),
					       EV(SEGFILE_MONO + ms * MS, 1, SPAWN, 8, 2)};
	struct segfile file = {.recording = 1, .pid = "42", .events = events, .n_events = 2};
	struct weft_segment *segment;
	char dir[256];

	facts = of;
	segfile_more = more;
	segfile_dir(dir, sizeof(dir));
	segfile_write(&file, segfile_path(dir, "a.weft"));
	REQUIRE(weft_segment_open(&segment, segfile_path(dir, "a.weft"), NULL) == 0);
	CHECK_EQ(weft__bundle_name(segment, group, name), 0);
	weft_segment_close(segment);
	segfile_remove(dir, names);
}

TEST(the_machine_is_a_task_an_instance_a_host_or_unknown)
{
	static const char *const ecs[][2] = {
		{"aws.ecs.task.arn", "arn:aws:ecs:us-east-1:123456789012:task/c/5_2"}, {"host.name", "h"}, {0}};
	static const char *const ec2[][2] = {
		{"cloud.platform", "aws_ec2"}, {"host.id", "i-0"}, {"host.name", "h"}, {0}};
	static const char *const host[][2] = {{"host.name", "my_host"}, {"service.name", "web/api"}, {0}};
	static const char *const none[][2] = {{"host.name", ""}, {0}};
	char name[BUNDLE_NAME];

	name_of(ecs, 30000, "pg", name);
	CHECK_STR(name, "profile_pg_ecs_arn:aws:ecs:us-east-1:123456789012:task-c-5-2__42_2023-11-14T22-13-50Z.zip");
	name_of(ec2, 30000, "pg", name);
	CHECK_STR(name, "profile_pg_ec2_i-0__42_2023-11-14T22-13-50Z.zip");
	name_of(host, 1000, NULL, name);
	CHECK_STR(name, "profile_web-api_onprem_my-host__42_2023-11-14T22-13-21Z.zip");
	name_of(none, 1000, "pg", name);
	CHECK_STR(name, "profile_pg_unknown___42_2023-11-14T22-13-21Z.zip");
}

TEST(segments_of_less_than_a_second_do_not_take_each_others_names)
{
	static const char *const ec2[][2] = {{"cloud.platform", "aws_ec2"}, {"host.id", "i-0"}, {0}};
	char one[BUNDLE_NAME], other[BUNDLE_NAME];

	name_of(ec2, 120, "pg", one);
	name_of(ec2, 480, "pg", other);
	CHECK_STR(one, "profile_pg_ec2_i-0__42_2023-11-14T22-13-20.120Z.zip");
	CHECK_STR(other, "profile_pg_ec2_i-0__42_2023-11-14T22-13-20.480Z.zip");
}

TEST(what_was_put_into_an_archive_comes_out_of_it)
{
	char path[] = "/tmp/weft-zip-XXXXXX", text[5000];
	int fd = mkstemp(path);
	struct weft__zip zip;
	struct weft__unzip unzip;
	struct weft__zip_entry entry;
	uint8_t bytes[8000], back[5000];
	uint64_t n;

	REQUIRE(fd >= 0);
	unlink(path);
	memset(text, 'x', sizeof(text));
	weft__zip_init(&zip, fd, 0);
	CHECK_EQ(weft__zip_add(&zip, "a.weft", text, sizeof(text)), 0);
	CHECK_EQ(weft__zip_add(&zip, "none", "", 0), 0);
	CHECK_EQ(weft__zip_end(&zip, &n), 0);
	weft__zip_fini(&zip);
	REQUIRE(n < sizeof(bytes) && pread(fd, bytes, (size_t)n, 0) == (ssize_t)n);
	REQUIRE(weft__unzip_init(&unzip, bytes, (size_t)n, NULL) == 0);
	REQUIRE(weft__unzip_next(&unzip, &entry, NULL) == 1);
	CHECK_STR(entry.name, "a.weft");
	REQUIRE(entry.bytes == sizeof(text) && weft__unzip_get(&entry, back, NULL) == 0);
	CHECK(memcmp(back, text, sizeof(text)) == 0);
	REQUIRE(weft__unzip_next(&unzip, &entry, NULL) == 1);
	CHECK_EQ(entry.bytes, 0);
	CHECK_EQ(weft__unzip_get(&entry, back, NULL), 0);
	CHECK_EQ(weft__unzip_next(&unzip, &entry, NULL), 0);
	bytes[100] ^= 1;
	REQUIRE(weft__unzip_init(&unzip, bytes, (size_t)n, NULL) == 0);
	REQUIRE(weft__unzip_next(&unzip, &entry, NULL) == 1);
	CHECK_EQ(weft__unzip_get(&entry, back, NULL), -WEFT_E_FORMAT);
	close(fd);
}
