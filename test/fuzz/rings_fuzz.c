/* SPDX-License-Identifier: Apache-2.0 */
/* What a dead process left: the input becomes the interesting parts of a ring file and, behind them, the active
 * segment. Recovery must end, and what it makes must be readable.
 *
 * The input is: u16 head patches, each u16 offset and one byte, over a good head; facts, definitions and staging,
 * each a u16 length and bytes, and staging's stand in its other half and in the memory of stacks, too; then per ring
 * (two of them) u64 tail, u64 head, u16 length and slots; the rest is the active file. */
#include <dirent.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "fuzz/read.h"
#include "record/ring/layout.h"
#include "weft/recorder.h"

#define SLOTS 256
#define RINGS 2
#define STRIDE (RING_PAGE + RING_GROWS * SLOTS * sizeof(struct weft_slot))
#define FACTS_AT RING_PAGE
#define DEFS_AT (FACTS_AT + FACTS_BYTES)
#define STAGING_AT (DEFS_AT + DEFS_BYTES)
#define STACKS_AT (STAGING_AT + STAGINGS * STAGING_BYTES)
#define RINGS_AT (STACKS_AT + STACKS_BYTES)

static char dir[64];
static int patched; /* else the ring file has to be taken for one: this target follows the layout */

static void remove_dir(void)
{
	struct dirent *entry;
	DIR *open = opendir(dir);

	while (open && (entry = readdir(open)))
		if (entry->d_name[0] != '.')
			unlinkat(dirfd(open), entry->d_name, 0);
	if (open)
		closedir(open);
}

static void remove_all(void)
{
	remove_dir();
	rmdir(dir);
}

static void put_at(int fd, const void *bytes, size_t n, uint64_t at)
{
	HOLDS(pwrite(fd, bytes, n, (off_t)at) == (ssize_t)n);
}

static size_t put_part(int fd, struct weft__in *in, size_t most, uint64_t at)
{
	const uint8_t *length = in_bytes(in, 2);
	size_t n = length ? get_u16(length) : 0;

	n = n < in_left(in) ? n : in_left(in);
	n = n < most ? n : most;
	put_at(fd, in_bytes(in, n), n, at);
	return n;
}

static void good_head(struct rings_head *head)
{
	memset(head, 0, sizeof(*head));
	memcpy(head->magic, RINGS_MAGIC, sizeof(head->magic));
	head->version = RINGS_VERSION;
	head->pid = 1;
	head->ring_slots = SLOTS;
	head->ring_most = RING_GROWS * SLOTS;
	head->max_rings = RINGS;
	head->quantum_ns = 8;
	head->tick_source = 1;
	head->facts_at = FACTS_AT;
	head->defs_at = DEFS_AT;
	head->staging_at = STAGING_AT;
	head->stacks_at = STACKS_AT;
	head->has_stacks = 1;
	head->next_stack = 1;
	head->rings_at = RINGS_AT;
	head->ring_stride = STRIDE;
	head->file_bytes = RINGS_AT + RINGS * STRIDE;
	head->n_rings = RINGS;
	head->next_stream = 3;
	head->clock_at = 1;
	head->clocks[0] = (struct weft_clock){1000, 1000, 5000};
	head->clocks[1] = (struct weft_clock){9000000, 9000000, 9005000};
	snprintf(head->active, sizeof(head->active), "x-000000.weft.active");
	snprintf(head->service, sizeof(head->service), "fuzz");
}

static size_t put_staging(int fd, struct weft__in *in)
{
	struct weft__in again = *in;

	put_part(fd, &again, 8192, STACKS_AT + offsetof(struct stacks, words));
	again = *in;
	put_part(fd, &again, 8192, STAGING_AT + STAGING_BYTES);
	return put_part(fd, in, 8192, STAGING_AT);
}

static void put_rings(int fd, struct weft__in *in)
{
	struct rings_head head;
	const uint8_t *n_patches = in_bytes(in, 2);
	uint32_t i, n = n_patches ? get_u16(n_patches) % 64 : 0;

	good_head(&head);
	patched = n > 0;
	/* Patches come before lengths that must fit the file, after the geometry that must be small. */
	for (i = 0; i < n; i++) {
		const uint8_t *patch = in_bytes(in, 3);

		if (patch)
			((uint8_t *)&head)[get_u16(patch) % sizeof(head)] = patch[2];
	}
	for (i = 0; i < sizeof(head.active); i++) /* nothing is to be written outside of the directory */
		head.active[i] = head.active[i] == '/' ? '_' : head.active[i];
	HOLDS(ftruncate(fd, RINGS_AT + RINGS * STRIDE) == 0);
	head.facts_used = put_part(fd, in, 1024, FACTS_AT);
	head.defs_used = put_part(fd, in, 4096, DEFS_AT);
	head.staging_used[0] = head.staging_used[1] = put_staging(fd, in);
	put_at(fd, &head, sizeof(head), 0);
	for (i = 0; i < RINGS; i++) {
		struct ring_page page = {0};
		const uint8_t *ends = in_bytes(in, 16);

		page.tail = ends ? get_u64(ends) : 0;
		page.hot.head = ends ? get_u64(ends + 8) : 0;
		page.hot.mask = (i + 1) * SLOTS - 1; /* the second has grown */
		page.thread.stream = i + 1;
		put_at(fd, &page, sizeof(page), RINGS_AT + i * STRIDE);
		put_part(fd, in, (i + 1) * SLOTS * sizeof(struct weft_slot), RINGS_AT + i * STRIDE + RING_PAGE);
	}
}

static int make(const char *name)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	HOLDS(fd >= 0);
	return fd;
}

static void recovered(const struct weft_recovered *one, void *data)
{
	struct weft_segment *seg;

	(void)data;
	HOLDS(one->note && one->path);
	HOLDS(patched || one->status != -WEFT_E_FORMAT || !strstr(one->path, "x.rings"));
	if (one->status)
		return;
	HOLDS(weft_segment_open(&seg, one->path, NULL) == 0);
	HOLDS(weft_segment_info(seg)->sealed && weft_segment_info(seg)->recovered);
	read_tables(seg);
	HOLDS(read_events(seg, WEFT_ORDER_STORED, 0, UINT64_MAX) == read_events(seg, WEFT_ORDER_TIME, 0, UINT64_MAX));
	weft_segment_close(seg);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct weft__in in = weft__in(data, size);
	int fd;

	if (!dir[0]) {
		snprintf(dir, sizeof(dir), "/dev/shm/weft-fuzz-%d", (int)getpid());
		if (mkdir(dir, 0700) < 0) {
			snprintf(dir, sizeof(dir), "/tmp/weft-fuzz-%d", (int)getpid());
			HOLDS(mkdir(dir, 0700) == 0);
		}
		atexit(remove_all);
	}
	fd = make("x.rings");
	put_rings(fd, &in);
	close(fd);
	if (in_left(&in)) {
		fd = make("x-000000.weft.active");
		put_at(fd, in.p, in_left(&in), 0);
		close(fd);
	}
	HOLDS(weft_recover(dir, recovered, NULL, NULL) >= 0);
	remove_dir();
	return 0;
}
