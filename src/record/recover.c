/* SPDX-License-Identifier: Apache-2.0 */
/* What a dead process left: its unsealed segment, the staging area and its rings, put together into one segment.
 * CALLER.
 *
 * The file has whole blocks up to a point; behind it may be a torn one. Blocks say for each ring how far it had
 * come. What is in staging beyond that comes next, then what is in the ring beyond staging. All of it is appended to
 * the file, which is then sealed; then the rings are removed, then the file gets its final name. Killed anywhere in
 * that, the next recovery goes on from there; the shared memory itself is never written.
 *
 * The directory may have files of anybody. Only regular files of this user that carry weft's mark are touched; names
 * are looked up below the descriptor of the directory, and links are read, never followed. */
#include "record/recover.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/dir.h"
#include "base/error.h"
#include "base/text.h"
#include "record/ring/names.h"
#include "segment/format.h"

struct walk {
	struct weft__salvage_at at;
	weft_recovered_fn *fn;
	void *data;
	int n;
};

/* The final name is the active name without its last part. */
static int name_sealed(const struct walk *walk, const char *active, char *final, size_t bytes)
{
	size_t n = strlen(active) - strlen(".active");

	if (n >= bytes)
		return -ENAMETOOLONG;
	memcpy(final, active, n);
	final[n] = 0;
	return weft__dir_rename(walk->at.dir, active, final);
}

static void report(struct walk *walk, struct weft_recovered *out, const char *name, int status, const char *note)
{
	char path[4096 + NAME_MAX + 2];

	snprintf(path, sizeof(path), "%.4095s/%.255s", walk->at.path, name);
	out->path = path;
	out->status = status;
	out->note = note;
	if (!status)
		walk->n++;
	weft__log(status ? WEFT_LOG_WARN : WEFT_LOG_INFO, "recover: %s: %s", path, note);
	if (walk->fn)
		walk->fn(out, walk->data);
	out->path = out->note = NULL; /* they were for that call */
}

/* What is called like a file of weft and is not one that may be touched. Other names are none of our business. */
static void report_foreign(struct walk *walk, const char *name, int ours, int status)
{
	struct weft_recovered out = {0};
	struct stat st;
	char note[120] = "does not carry weft's mark: left alone";

	if (!ours)
		return;
	if (status == -EPERM && fstatat(walk->at.dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
		if (st.st_uid != geteuid())
			snprintf(note, sizeof(note), "belongs to user %u, who can recover it: left alone",
				 (unsigned)st.st_uid);
		else
			snprintf(note, sizeof(note), "not a regular file with one name: left alone");
	}
	report(walk, &out, name, status == -EPERM ? status : -WEFT_E_FORMAT, note);
}

static int is_there(const struct walk *walk, const char *name)
{
	struct stat st;

	return fstatat(walk->at.dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

/* The name under which the rest of the recording goes on: the active segment, or the one after it when that was just
 * sealed. */
static void active_name(const struct walk *walk, struct rings_head *head, char *name, size_t bytes)
{
	char sealed[NAME_MAX + 1];
	char *end;

	snprintf(name, bytes, "%s", head->active);
	end = strstr(name, ".active");
	if (!end)
		return;
	snprintf(sealed, sizeof(sealed), "%.*s", (int)(end - name), name);
	if (!is_there(walk, name) && is_there(walk, sealed)) {
		head->sequence++;
		end = strrchr(name, '-');
		if (end)
			snprintf(end, bytes - (size_t)(end - name), "-%06llu.weft.active",
				 (unsigned long long)head->sequence);
	}
}

/* A recording that ended before its first segment was begun has no name for one yet. */
static void name_first(struct rings_head *head, const char *link)
{
	size_t n = strlen(link) - strlen(".rings");

	if (head->active[0])
		return;
	snprintf(head->active, sizeof(head->active), "%.*s-%06llu.weft.active", (int)(n < 200 ? n : 200), link,
		 (unsigned long long)head->sequence);
}

/* A file that was begun and got nothing is as good as none. */
static int nothing_left(const struct weft__salvage *s, const struct walk *walk, const char *name)
{
	const struct rings_head *head = s->region.head;
	struct stat st;
	uint32_t i;

	if ((fstatat(walk->at.dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_size > SEG_HEADER_BYTES) ||
	    staging_any(head))
		return 0;
	for (i = 0; i < head->n_rings; i++) {
		const struct ring_page *ring = ring_page_at(s->region.map, i);

		uint32_t sum[POLLS_COUNTS];

		weft__polls_sum(&ring->polls, sum);
		if (ring->hot.head != ring->tail || memcmp(sum, ring->polls_reported, sizeof(sum)) ||
		    ring->hot.parks != ring->parks_reported ||
		    memcmp(ring->hot.counted, ring->counted_seen, sizeof(ring->counted_seen)))
			return 0;
	}
	return 1;
}

/* Removes a file that is marked, or empty and called like one of weft, and that nobody has locked. Answers whether
 * its maker is alive. */
static int sweep_file(int dir, const char *name, int ours)
{
	int fd = weft__dir_file(dir, name, O_RDWR), busy;
	struct weft__own own = weft__own_of(fd);

	if (fd < 0)
		return 0;
	busy = weft__file_lock(fd) != 0;
	if (!busy && (weft__file_marked(fd, SEG_MAGIC) || weft__file_marked(fd, RINGS_MAGIC) ||
		      (ours && lseek(fd, 0, SEEK_END) == 0)))
		weft__dir_remove(dir, name, &own);
	close(fd);
	return busy;
}

/* Where the rings are that a name in the directory stands for: there, or in /dev/shm by a link that weft has made. */
struct rings_place {
	int dir; /* its own, to be closed */
	char name[NAME_MAX + 1];
	int linked;
};

/* 0, or -errno; -EPERM: it is none of weft's. */
static int rings_find(const struct walk *walk, const char *name, struct rings_place *ret)
{
	char text[4096];
	struct stat st;
	ssize_t n;

	if (fstatat(walk->at.dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	ret->linked = S_ISLNK(st.st_mode);
	if (!ret->linked) {
		snprintf(ret->name, sizeof(ret->name), "%s", name);
		ret->dir = fcntl(walk->at.dir, F_DUPFD_CLOEXEC, 3);
		return ret->dir < 0 ? -errno : 0;
	}
	n = readlinkat(walk->at.dir, name, text, sizeof(text) - 1);
	text[n > 0 ? n : 0] = 0;
	if (st.st_uid != geteuid() || !weft__region_link_valid(name, text, ret->name, sizeof(ret->name)))
		return -EPERM;
	ret->dir = weft__region_shm();
	return ret->dir < 0 ? ret->dir : 0;
}

/* The link goes last: without it nobody would find the file again. */
static void remove_rings(const struct walk *walk, const char *name, const struct rings_place *place,
			 const struct weft__own *own)
{
	weft__dir_remove(place->dir, place->name, own);
	if (place->linked)
		unlinkat(walk->at.dir, name, 0);
}

/* What nothing can be done with gets out of the way, and stays for a person to look at. */
static void set_aside(const struct walk *walk, const char *name, char *aside, size_t bytes)
{
	snprintf(aside, bytes, "%.240s.broken", name);
	if (weft__dir_rename(walk->at.dir, name, aside) < 0)
		snprintf(aside, bytes, "%s", name);
}

/* A link to nothing: the machine was restarted, or the process was killed, or is, between making the link and the
 * file. */
static void sweep_link(const struct walk *walk, const char *name, const struct rings_place *place)
{
	char begun[NAME_MAX + 1 + sizeof(NEW_END)];
	struct stat st;

	snprintf(begun, sizeof(begun), "%s" NEW_END, place->name);
	if (!sweep_file(place->dir, begun, 1) && fstatat(place->dir, place->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		unlinkat(walk->at.dir, name, 0);
}

static void sweep_blank(const struct walk *walk, const char *name, const struct rings_place *place)
{
	if (!sweep_file(place->dir, place->name, 0) && place->linked)
		unlinkat(walk->at.dir, name, 0);
}

static void recover_new(struct walk *walk, const char *name)
{
	sweep_file(walk->at.dir, name,
		   stem_of_segment(name, ".weft.active" NEW_END) || stem_of_segment(name, ".weft" NEW_END) ||
			   stem_of_rings(name, ".rings" NEW_END));
}

static void recover_region(struct walk *walk, const char *link, const struct rings_place *place,
			   struct weft__salvage *s)
{
	struct weft_recovered out = {0};
	struct weft_error err = {0};
	char name[NAME_MAX + 1], final[NAME_MAX + 1] = "", note[200];
	int r;

	name_first(s->region.head, link);
	active_name(walk, s->region.head, name, sizeof(name));
	if (nothing_left(s, walk, name)) {
		sweep_file(walk->at.dir, name, 0);
		remove_rings(walk, link, place, &s->region.file.own);
		return;
	}
	r = weft__salvage_file(s, &walk->at, name, &out, &err);
	/* In this order: under its final name the file must not meet the rings again, whose events it has. */
	if (!r) {
		remove_rings(walk, link, place, &s->region.file.own);
		r = name_sealed(walk, name, final, sizeof(final));
	}
	out.pid = s->region.head->pid;
	snprintf(note, sizeof(note), "recording of process %u (%s)", s->region.head->pid, s->region.head->service);
	if (r && !err.msg[0])
		weft__fail(&err, r, "%s/%s: %s", walk->at.path, name, weft_strerror(r));
	report(walk, &out, r ? name : final, r, r ? err.msg : note);
}

static void recover_rings(struct walk *walk, const char *link)
{
	struct weft__salvage s = {.fd = -1, .undo_to = -1, .region = {.file = {.fd = -1}}};
	struct rings_place place = {.dir = -1};
	struct weft_recovered out = {0};
	struct weft_error err = {0};
	char aside[NAME_MAX + 1];
	int r = rings_find(walk, link, &place);

	if (r) {
		if (r == -EPERM)
			report_foreign(walk, link, stem_of_rings(link, ".rings") != 0, r);
		return;
	}
	r = weft__region_adopt(&s.region, place.dir, place.name, &err);
	if (r == -EPERM || r == -EBADF) {
		report_foreign(walk, link, stem_of_rings(link, ".rings") != 0, r);
	} else if (r == -ENOENT) {
		if (place.linked)
			sweep_link(walk, link, &place);
	} else if (r == -ENODATA) {
		sweep_blank(walk, link, &place);
	} else if (r && r != -WEFT_E_BUSY) {
		if (r == -WEFT_E_FORMAT)
			set_aside(walk, link, aside, sizeof(aside));
		report(walk, &out, r == -WEFT_E_FORMAT ? aside : link, r, err.msg);
	} else if (!r) {
		recover_region(walk, link, &place, &s);
		weft__salvage_close(&s);
	}
	close(place.dir);
}

/* Whether the rings of an active segment are still there: in use, or beyond recovery for now. */
static int has_rings(const struct walk *walk, const char *name)
{
	const char *number = strrchr(name, '-');
	char link[NAME_MAX + 1];

	return number &&
	       (size_t)snprintf(link, sizeof(link), "%.*s.rings", (int)(number - name), name) < sizeof(link) &&
	       is_there(walk, link);
}

/* An unsealed segment whose rings are gone. Without them it must not be sealed before: they know only the active
 * name. */
static void recover_active(struct walk *walk, const char *name)
{
	struct weft__salvage s = {.fd = -1, .undo_to = -1, .region = {.file = {.fd = -1}}};
	struct weft_recovered out = {0};
	struct weft_error err = {0};
	char final[NAME_MAX + 1] = "";
	int r;

	if (has_rings(walk, name))
		return;
	r = weft__salvage_file(&s, &walk->at, name, &out, &err);
	if (!r)
		r = name_sealed(walk, name, final, sizeof(final));
	if (r == -EPERM || r == -EBADF) {
		report_foreign(walk, name, stem_of_segment(name, ".weft.active") != 0, r);
	} else if (r == -WEFT_E_FORMAT) {
		set_aside(walk, name, final, sizeof(final));
		report(walk, &out, final, r, "nothing in it can be read; set aside under this name");
	} else if (r != -WEFT_E_BUSY && r != -ENOENT) {
		if (r && !err.msg[0])
			weft__fail(&err, r, "%s/%s: %s", walk->at.path, name, weft_strerror(r));
		report(walk, &out, r ? name : final, r, r ? err.msg : "from its segment file alone");
	}
	weft__salvage_close(&s);
}

static int each_file(struct walk *walk, const char *end, void (*fn)(struct walk *, const char *),
		     struct weft_error *err)
{
	struct weft__list list;
	const char *name;
	int r = weft__list_open(&list, walk->at.dir, ".");

	if (r)
		return weft__fail(err, r, "%s: %s; give the directory that a recorder wrote to", walk->at.path,
				  weft_strerror(r));
	while ((name = weft__list_next(&list)))
		if (weft__ends_in(name, end))
			fn(walk, name);
	weft__list_close(&list);
	return 0;
}

int weft_recover(const char *dir, weft_recovered_fn *fn, void *data, struct weft_error *err)
{
	struct walk walk = {{weft__dir_open(dir, 0, NULL), dir}, fn, data, 0};
	int r;

	if (walk.at.dir < 0)
		return weft__fail(err, walk.at.dir, "%s: %s; give the directory that a recorder wrote to", dir,
				  weft_strerror(walk.at.dir));
	r = weft__dir_check(walk.at.dir, dir, err);
	if (!r)
		r = each_file(&walk, ".rings", recover_rings, err);
	if (!r)
		r = each_file(&walk, ".weft.active", recover_active, err);
	if (!r)
		r = each_file(&walk, NEW_END, recover_new, err);
	close(walk.at.dir);
	weft__region_sweep();
	return r ? r : walk.n;
}
