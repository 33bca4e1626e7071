/* SPDX-License-Identifier: Apache-2.0 */
/* What a dead process left: its unsealed segment, the staging area and its rings, put together into one segment. CALLER.
 *
 * The file has whole blocks up to a point; behind it may be a torn one. Blocks tell for each ring how far it had come. What
 * is in staging beyond that comes next, then what is in the ring beyond staging. All of it is appended to the file, which is
 * then sealed; then the rings are removed, then the file gets its final name. Killed anywhere in that, the next recovery goes on
 * from there; the shared memory itself is never written. */
#include "record/recover.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/atomic.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "record/collect/unpack.h"
#include "segment/format.h"

static int salvage_open(struct weft__salvage *s, struct weft_error *err)
{
	int r;

	s->progress = weft__calloc(s->region.head ? s->region.head->n_rings + 1 : 1, sizeof(*s->progress));
	s->known = weft__calloc(1, sizeof(*s->known));
	r = s->progress && s->known ? weft__encoder_open(&s->encoder, 1) : -ENOMEM;
	if (r)
		return weft__fail(err, r, "out of memory");
	weft__batch_init(&s->batch, s->region.head ? s->region.head->quantum_ns : 8);
	if (s->region.head)
		weft__salvage_clock(s);
	return 0;
}

static void salvage_close(struct weft__salvage *s)
{
	weft_segment_close(s->active);
	if (s->known)
		weft__segment_free_defs(s->known);
	weft__free(s->known);
	weft__free(s->progress);
	weft__encoder_close(s->encoder);
	weft__batch_fini(&s->batch);
	weft__buf_free(&s->payload);
	weft__defs_fini(&s->defs);
	weft__code_fini(&s->code);
	weft__writer_fini(&s->writer);
	if (s->fd >= 0)
		close(s->fd);
	weft__region_close(&s->region);
}

/* How far each ring had come, from the blocks that are in the file. */
static int learn_progress(struct weft__salvage *s)
{
	struct weft_segment *seg = s->active;
	struct weft__decoded block = {0};
	size_t i;
	int err = 0;

	for (i = 0; i < seg->n_blocks && !err; i++) {
		struct weft__block *b = &seg->blocks[i];
		const uint8_t *payload;
		const char *why;
		uint32_t c, at = 0;
		int oom;

		if (b->type != BLOCK_EVENTS)
			continue;
		payload = weft__segment_payload(seg, b, &oom);
		if (oom)
			err = -ENOMEM;
		if (!payload)
			continue;
		err = weft__decoder_events(seg->decoder, payload, b->bytes, b->count, &block, &why);
		if (err == -WEFT_E_DAMAGED) {
			err = 0;
			continue;
		}
		for (c = 0; !err && c < block.n_chunks; c++) {
			const struct weft__chunk *chunk = &block.chunks[c];

			at += chunk->n_events;
			if (!chunk->n_slots && s->region.head && chunk->ring < s->region.head->n_rings)
				s->progress[chunk->ring].counted = 1;
			weft__salvage_passed(s, chunk->ring, chunk->first_slot + chunk->n_slots, chunk->stream,
					     block.time[at - 1]);
		}
	}
	weft__decoded_fini(&block);
	return err;
}

void weft__salvage_passed(struct weft__salvage *s, uint32_t ring, uint64_t upto, uint32_t stream, uint64_t last_ns)
{
	struct weft__progress *p;

	if (!s->region.head || ring >= s->region.head->n_rings)
		return;
	p = &s->progress[ring];
	if (upto <= p->next)
		return;
	if (p->stream != stream)
		p->last_ns = 0;
	p->next = upto;
	p->stream = stream;
	if (last_ns > p->last_ns)
		p->last_ns = last_ns;
}

/* Keeps the whole blocks of the file, and makes ready to append. */
static int adopt_file(struct weft__salvage *s)
{
	struct weft_segment *seg = s->active;
	size_t i;
	int err = 0;

	weft__writer_adopt(&s->writer, s->fd, seg->good_end);
	for (i = 0; i < seg->n_blocks && !err; i++) {
		const struct weft__block *b = &seg->blocks[i];

		if (!b->bad)
			err = weft__writer_told(&s->writer, b->type, b->offset, BLOCK_HEADER_BYTES + (uint64_t)b->bytes,
						b->count, b->first_ns, b->last_ns);
	}
	s->cut_bytes = seg->info.sealed ? 0 : seg->n_bytes - seg->good_end;
	if (err)
		return err;
	s->undo_to = (int64_t)seg->good_end;
	return ftruncate(s->fd, (off_t)seg->good_end) < 0 ? -errno : 0;
}

static int begin_missing(struct weft__salvage *s)
{
	const struct rings_head *head = s->region.head;
	struct weft__segment_head seg = {.flags = SEG_FLAG_RECOVERED, .sequence = head->sequence};

	memcpy(seg.recording, head->recording, sizeof(seg.recording));
	seg.mono_ns = s->timeline.last.mono_ns;
	seg.real_ns = s->timeline.last.real_ns;
	s->undo_to = 0;
	if (ftruncate(s->fd, 0) < 0)
		return -errno;
	return weft__writer_begin(&s->writer, s->fd, &seg);
}

int weft__salvage_flush(struct weft__salvage *s)
{
	uint64_t first, last;
	int err;

	if (weft__defs_oom(&s->defs))
		return -ENOMEM;
	err = weft__writer_defs(&s->writer, s->encoder, &s->defs);
	weft__defs_clear(&s->defs);
	if (err || !s->batch.n)
		return err;
	err = weft__encoder_events(s->encoder, &s->batch, &s->payload, &first, &last);
	if (!err)
		err = weft__writer_block(&s->writer, BLOCK_EVENTS, 0, (uint32_t)s->batch.n, first, last, &s->payload);
	s->from_rings += s->batch.n;
	weft__batch_clear(&s->batch);
	return err;
}

/* After this everything is in the file, and on the disk: the rings may go. */
static int seal(struct weft__salvage *s)
{
	int err = weft__writer_seal(&s->writer, BLOCK_FLAG_RECOVERED);

	if (!err && fdatasync(s->fd) < 0 && errno != EINVAL)
		err = -errno;
	return err;
}

/* The final name is the active name without its last part. */
static int name_sealed(const char *path, char *final, size_t bytes)
{
	size_t n = strlen(path) - strlen(".active");

	if (n >= bytes)
		return -ENAMETOOLONG;
	memcpy(final, path, n);
	final[n] = 0;
	return rename(path, final) < 0 ? -errno : 0;
}

/* Opens the file to append to. A missing or unreadable one is begun anew when there are rings to fill it from. */
static int open_active(struct weft__salvage *s, const char *path, struct weft_error *err)
{
	int r;

	s->fd = open(path, O_RDWR | O_CLOEXEC | (s->region.head ? O_CREAT : 0), 0644);
	if (s->fd < 0)
		return weft__fail(err, -errno, "%s: %s", path, weft_strerror(-errno));
	r = weft__file_lock(s->fd);
	if (r)
		return weft__fail(err, r, "%s: its process is alive", path);
	r = weft_segment_open(&s->active, path, err);
	if (!r) {
		r = learn_progress(s);
		return r ? r : adopt_file(s);
	}
	if (r != -WEFT_E_FORMAT || !s->region.head)
		return r;
	return begin_missing(s);
}

static int salvage(struct weft__salvage *s, const char *path, struct weft_recovered *out, struct weft_error *err)
{
	int r = salvage_open(s, err);

	if (!r)
		r = open_active(s, path, err);
	if (!r && s->region.head)
		r = weft__salvage_memory(s);
	if (!r)
		r = weft__salvage_flush(s);
	if (!r)
		r = seal(s);
	if (r && s->undo_to >= 0)
		(void)!ftruncate(s->fd, (off_t)s->undo_to); /* the rings have it all still */
	out->events = s->writer.n_events;
	out->from_rings = s->from_rings;
	out->cut_bytes = s->cut_bytes;
	return r;
}

struct walk {
	const char *dir;
	weft_recovered_fn *fn;
	void *data;
	int n;
};

static void report(struct walk *walk, struct weft_recovered *out, const char *path, int status, const char *note)
{
	out->path = path;
	out->status = status;
	out->note = note;
	if (!status)
		walk->n++;
	weft__log(status ? WEFT_LOG_WARN : WEFT_LOG_INFO, "recover: %s: %s", path, note);
	if (walk->fn)
		walk->fn(out, walk->data);
}

/* The name under which the rest of the recording goes on: the active segment, or the one after it when that was just sealed. */
static void active_path(const struct walk *walk, struct rings_head *head, char *path, size_t bytes)
{
	char sealed[4096];
	char *end;

	snprintf(path, bytes, "%s/%s", walk->dir, head->active);
	end = strstr(path, ".active");
	if (!end)
		return;
	snprintf(sealed, sizeof(sealed), "%.*s", (int)(end - path), path);
	if (access(path, F_OK) < 0 && access(sealed, F_OK) == 0) {
		head->sequence++;
		end = strrchr(path, '-');
		if (end)
			snprintf(end, bytes - (size_t)(end - path), "-%06llu.weft.active",
				 (unsigned long long)head->sequence);
	}
}

/* A recording that ended before its first segment was begun has no name for one yet. */
static void name_first(struct rings_head *head, const char *link)
{
	const char *base = strrchr(link, '/');
	size_t n;

	if (head->active[0])
		return;
	base = base ? base + 1 : link;
	n = strlen(base) - strlen(".rings");
	snprintf(head->active, sizeof(head->active), "%.*s-%06llu.weft.active", (int)(n < 200 ? n : 200), base,
		 (unsigned long long)head->sequence);
}

/* A file that was begun and got nothing is as good as none. */
static int nothing_left(const struct weft__salvage *s, const char *path)
{
	const struct rings_head *head = s->region.head;
	struct stat st;
	uint32_t i;

	if ((lstat(path, &st) == 0 && st.st_size > SEG_HEADER_BYTES) || staging_any(head))
		return 0;
	for (i = 0; i < head->n_rings; i++) {
		const struct ring_page *ring = ring_page_at(s->region.base, head, i);

		uint32_t sum[POLLS_COUNTS];

		weft__polls_sum(&ring->polls, sum);
		if (ring->hot.head != ring->tail || memcmp(sum, ring->polls_told, sizeof(sum)))
			return 0;
	}
	return 1;
}

/* The link goes last: without it nobody would find the file again. */
static void remove_rings(const char *link)
{
	char target[4096];
	ssize_t n = readlink(link, target, sizeof(target) - 1);

	if (n > 0) {
		target[n] = 0;
		unlink(target);
	}
	unlink(link);
}

/* What nothing can be done with gets out of the way, and stays for a person to look at. */
static void set_aside(const char *path, char *aside, size_t bytes)
{
	snprintf(aside, bytes, "%s.broken", path);
	(void)!rename(path, aside);
}

/* A file that got no further than its making. Answers whether its maker is alive. */
static int sweep_new(const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	int busy = 0;

	if (fd < 0)
		return 0;
	busy = weft__file_lock(fd) != 0;
	if (!busy)
		unlink(path);
	close(fd);
	return busy;
}

/* A link to nothing: the machine was restarted, or the process was killed, or is, between making the link and the file. */
static void sweep_link(const char *link)
{
	char target[4096];
	ssize_t n = readlink(link, target, sizeof(target) - sizeof(NEW_END));

	if (n <= 0)
		return;
	memcpy(target + n, NEW_END, sizeof(NEW_END));
	if (!sweep_new(target) && access(link, F_OK) < 0)
		unlink(link);
}

static void recover_new(struct walk *walk, const char *path)
{
	(void)walk;
	sweep_new(path);
}

static void recover_rings(struct walk *walk, const char *link)
{
	struct weft__salvage s = {.fd = -1, .undo_to = -1, .region = {.file = {.fd = -1}}};
	struct weft_recovered out = {0};
	struct weft_error err = {0};
	char path[4096], final[4096] = "", note[200];
	int r = weft__region_adopt(&s.region, link, &err);

	if (r == -ENOENT)
		sweep_link(link);
	if (r == -ENODATA)
		remove_rings(link);
	if (r == -WEFT_E_BUSY || r == -ENODATA || r == -ENOENT)
		return;
	if (r) {
		if (r == -WEFT_E_FORMAT)
			set_aside(link, final, sizeof(final));
		report(walk, &out, r == -WEFT_E_FORMAT ? final : link, r, err.msg);
		return;
	}
	name_first(s.region.head, link);
	active_path(walk, s.region.head, path, sizeof(path));
	if (nothing_left(&s, path)) {
		unlink(path);
		remove_rings(link);
		salvage_close(&s);
		return;
	}
	r = salvage(&s, path, &out, &err);
	/* In this order: under its final name the file must not meet the rings again, whose events it has. */
	if (!r) {
		remove_rings(link);
		r = name_sealed(path, final, sizeof(final));
	}
	out.pid = s.region.head->pid;
	snprintf(note, sizeof(note), "recording of process %u (%s)", s.region.head->pid, s.region.head->service);
	if (r && !err.msg[0])
		weft__fail(&err, r, "%s: %s", path, weft_strerror(r));
	report(walk, &out, r ? path : final, r, r ? err.msg : note);
	salvage_close(&s);
}

/* Whether the rings of an active segment are still there: in use, or beyond recovery for now. */
static int has_rings(const char *path)
{
	const char *number = strrchr(path, '-');
	char link[4096];
	struct stat st;

	return number &&
	       (size_t)snprintf(link, sizeof(link), "%.*s.rings", (int)(number - path), path) < sizeof(link) &&
	       lstat(link, &st) == 0;
}

/* An unsealed segment whose rings are gone. Without them it must not be sealed before: they know only the active name. */
static void recover_active(struct walk *walk, const char *path)
{
	struct weft__salvage s = {.fd = -1, .undo_to = -1, .region = {.file = {.fd = -1}}};
	struct weft_recovered out = {0};
	struct weft_error err = {0};
	char final[4096] = "";
	int r;

	if (has_rings(path))
		return;
	r = salvage(&s, path, &out, &err);
	if (!r)
		r = name_sealed(path, final, sizeof(final));
	if (r == -WEFT_E_FORMAT) {
		set_aside(path, final, sizeof(final));
		report(walk, &out, final, r, "nothing in it can be read; set aside under this name");
	} else if (r != -WEFT_E_BUSY) {
		if (r && !err.msg[0])
			weft__fail(&err, r, "%s: %s", path, weft_strerror(r));
		report(walk, &out, r ? path : final, r, r ? err.msg : "from its segment file alone");
	}
	salvage_close(&s);
}

static int each_file(struct walk *walk, const char *end, void (*fn)(struct walk *, const char *),
		     struct weft_error *err)
{
	DIR *dir = opendir(walk->dir);
	struct dirent *entry;

	if (!dir)
		return weft__fail(err, -errno, "%s: %s; give the directory that a recorder wrote to", walk->dir,
				  weft_strerror(-errno));
	while ((entry = readdir(dir))) {
		char path[4096];

		if (weft__ends_in(entry->d_name, end) &&
		    (size_t)snprintf(path, sizeof(path), "%s/%s", walk->dir, entry->d_name) < sizeof(path))
			fn(walk, path);
	}
	closedir(dir);
	return 0;
}

int weft_recover(const char *dir, weft_recovered_fn *fn, void *data, struct weft_error *err)
{
	struct walk walk = {dir, fn, data, 0};
	int r = each_file(&walk, ".rings", recover_rings, err);

	if (!r)
		r = each_file(&walk, ".weft.active", recover_active, err);
	if (!r)
		r = each_file(&walk, NEW_END, recover_new, err);
	return r ? r : walk.n;
}
