/* SPDX-License-Identifier: Apache-2.0 */
/* The new file has no name while it is written, where the file system can do that, so that a crash leaves nothing
 * behind. Just before it takes the name of the old one it has one that ends in .new and a lock: recovery removes
 * such a file when nobody holds the lock. */
#include "analyze/annotate_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/dir.h"
#include "base/error.h"
#include "base/text.h"
#include "segment/batch.h"
#include "segment/format.h"

#define COPY_BYTES 65536
#define LEVEL 3 /* names are text: it is worth it, and done once */

/* A segment of somebody else can be read, and stays as it is. */
static int owned_elsewhere(struct weft_segment *seg, const char *path, struct weft_error *err)
{
	struct stat st;

	if (fstat(seg->fd, &st) == 0 && st.st_uid == geteuid() && st.st_nlink == 1)
		return 0;
	return weft__fail(
		err, -EPERM,
		"%s: not changed, since it belongs to user %u or has another name; give another file with -o, or do "
		"it as that user",
		path, (unsigned)st.st_uid);
}

int weft__copy_allowed(struct weft_segment *seg, const char *path, bool in_place, struct weft_error *err)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

	if (in_place && owned_elsewhere(seg, path, err))
		return -EPERM;
	if (seg->info.sealed)
		return 0;
	if (fcntl(seg->fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK)
		return weft__fail(err, -WEFT_E_BUSY,
				  "%s: a living process writes it; wait until it is sealed (its name ends in .weft "
				  "then), call weft_recorder_rotate there, or stop that process",
				  path);
	if (in_place && weft__ends_in(path, ".active"))
		return weft__fail(err, -WEFT_E_STATE,
				  "%s: left by a process that was killed; run weft recover on its directory first, or "
				  "give another file with -o",
				  path);
	return 0;
}

/* Where the bytes end that the new file keeps: before the index, which it gets anew. */
static uint64_t end_of(struct weft_segment *seg)
{
	struct weft__block index;
	uint64_t at;

	if (!weft__segment_trailer(seg, &at))
		return seg->n_bytes;
	if (at >= seg->blocks_at && weft__segment_block_head(seg, at, &index) && index.type == BLOCK_INDEX &&
	    at + BLOCK_HEADER_BYTES + index.bytes == seg->n_bytes - TRAILER_BYTES && weft__segment_whole(seg, &index))
		return at;
	return seg->n_bytes - TRAILER_BYTES;
}

static int copy_slowly(int from, int to, uint64_t at, uint64_t end)
{
	char bytes[COPY_BYTES];

	while (at < end) {
		size_t most = end - at < sizeof(bytes) ? (size_t)(end - at) : sizeof(bytes);
		ssize_t n = pread(from, bytes, most, (off_t)at), done = 0;

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		while (done < n) {
			ssize_t w = pwrite(to, bytes + done, (size_t)(n - done), (off_t)at + done);

			if (w < 0 && errno != EINTR)
				return -errno;
			if (w == 0)
				return -ENOSPC;
			done += w > 0 ? w : 0;
		}
		at += (uint64_t)n;
	}
	return 0;
}

/* The kernel copies, or even shares, where it can. */
static int copy_bytes(int from, int to, uint64_t end)
{
	off64_t in = 0, out = 0;

	while ((uint64_t)in < end) {
		ssize_t n = copy_file_range(from, &in, to, &out, (size_t)(end - (uint64_t)in), 0);

		if (n == 0 || (n < 0 && errno != EINTR))
			break;
	}
	return copy_slowly(from, to, (uint64_t)in, end);
}

/* Tells the writer of the whole blocks, which is what the index lists. */
static int tell_blocks(struct weft__copy *copy)
{
	struct weft_segment *seg = copy->seg;
	size_t i;

	for (i = 0; i < seg->n_blocks; i++) {
		struct weft__block block;
		int err;

		if (!weft__segment_block_head(seg, seg->blocks[i].offset, &block) || !weft__segment_whole(seg, &block))
			continue;
		err = weft__writer_adopted(&copy->writer, block.type, block.offset,
					   BLOCK_HEADER_BYTES + (uint64_t)block.bytes, block.count, block.first_ns,
					   block.last_ns < block.first_ns ? block.first_ns : block.last_ns);
		if (err)
			return err;
	}
	return seg->oom ? -ENOMEM : 0;
}

/* The directory and the name there. */
static int find_place(struct weft__copy *copy, struct weft_error *err)
{
	const char *slash = strrchr(copy->to, '/');
	char dir[4096] = ".";
	size_t n = slash ? (size_t)(slash - copy->to) : 0;

	if (n >= sizeof(dir))
		return weft__fail(err, -ENAMETOOLONG, "%s: %s", copy->to, weft_strerror(-ENAMETOOLONG));
	if (slash) {
		memcpy(dir, copy->to, n ? n : 1);
		dir[n ? n : 1] = 0;
	}
	copy->name = slash ? slash + 1 : copy->to;
	copy->dir = weft__dir_open(dir, 0, err);
	return copy->dir < 0 ? copy->dir : 0;
}

static int lock_it(int fd)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

	return fcntl(fd, F_OFD_SETLK, &lock) == 0 ? 0 : -errno;
}

static int create(struct weft__copy *copy)
{
	char name[sizeof(copy->temporary)];

	if ((size_t)snprintf(name, sizeof(name), "%s.%d.new", copy->name, (int)getpid()) >= sizeof(name))
		return -ENAMETOOLONG;
	copy->fd = openat(copy->dir, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, FILE_MODE);
	if (copy->fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL)) {
		copy->fd = weft__dir_create(copy->dir, name, FILE_MODE);
		if (copy->fd < 0)
			return copy->fd;
		memcpy(copy->temporary, name, sizeof(name));
	}
	if (copy->fd < 0)
		return -errno;
	lock_it(copy->fd);
	return 0;
}

int weft__copy_begin(struct weft__copy *copy, struct weft_segment *seg, const char *to, struct weft_error *err)
{
	uint64_t end = end_of(seg);
	int r;

	*copy = (struct weft__copy){.seg = seg, .to = to, .fd = -1, .dir = -1};
	r = find_place(copy, err);
	if (r)
		return r;
	r = create(copy);
	if (r)
		return weft__fail(err, r, "cannot write beside %s: %s; give another place with -o", to,
				  weft_strerror(r));
	r = copy_bytes(seg->fd, copy->fd, end);
	if (!r)
		r = weft__encoder_open(&copy->encoder, LEVEL);
	weft__writer_adopt(&copy->writer, copy->fd, end);
	if (!r)
		r = tell_blocks(copy);
	return r ? weft__fail(err, r, "cannot copy to %s: %s", to, weft_strerror(r)) : 0;
}

int weft__copy_defs(struct weft__copy *copy, const struct weft__defs *defs, struct weft_error *err)
{
	int r = weft__defs_oom(defs) ? -ENOMEM : weft__writer_defs(&copy->writer, copy->encoder, defs);

	return r ? weft__fail(err, r, "cannot write %s: %s", copy->to, weft_strerror(r)) : 0;
}

/* How old it is stays: by age old segments are deleted. So does, in place, who may read it. */
static void keep_attributes(int fd, const struct stat *st, bool replace)
{
	struct timespec times[2] = {st->st_atim, st->st_mtim};

	if (replace) {
		(void)!fchown(fd, (uid_t)-1, st->st_gid);
		(void)!fchmod(fd, st->st_mode & 0777);
	}
	(void)!futimens(fd, times);
}

static int give_temporary_name(struct weft__copy *copy)
{
	char own[64], name[sizeof(copy->temporary)];

	if (copy->temporary[0])
		return 0;
	snprintf(name, sizeof(name), "%.200s.%d.new", copy->name, (int)getpid());
	snprintf(own, sizeof(own), "/proc/self/fd/%d", copy->fd);
	if (linkat(AT_FDCWD, own, copy->dir, name, AT_SYMLINK_FOLLOW) < 0)
		return -errno;
	memcpy(copy->temporary, name, sizeof(name));
	return 0;
}

/* Retention may have deleted the old one while the new one was made: then nobody wants it. */
static int still_there(const struct weft__copy *copy, const struct stat *old)
{
	struct stat st;

	if (fstatat(copy->dir, copy->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	return st.st_dev == old->st_dev && st.st_ino == old->st_ino ? 0 : -ESTALE;
}

/* A file that is there and is to be replaced is one of this user's. */
static int free_to_take(const struct weft__copy *copy)
{
	struct stat st;
	int r = weft__dir_mine(copy->dir, copy->name, &st);

	return r == -ENOENT ? 0 : r;
}

static void sync_dir(int dir)
{
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return;
	fsync(fd);
	close(fd);
}

int weft__copy_end(struct weft__copy *copy, bool replace, struct weft_error *err)
{
	struct stat st;
	int r = weft__writer_seal(&copy->writer, copy->seg->info.recovered ? BLOCK_FLAG_RECOVERED : 0);

	if (!r && fstat(copy->seg->fd, &st) < 0)
		r = -errno;
	if (!r)
		keep_attributes(copy->fd, &st, replace);
	if (!r && fsync(copy->fd) < 0)
		r = -errno;
	if (!r)
		r = give_temporary_name(copy);
	if (!r)
		r = replace ? still_there(copy, &st) : free_to_take(copy);
	if (!r && renameat(copy->dir, copy->temporary, copy->dir, copy->name) < 0)
		r = -errno;
	if (r == -ESTALE)
		return weft__fail(err, r, "%s: somebody else put another file there meanwhile; try again", copy->to);
	if (r)
		return weft__fail(err, r, "cannot write %s: %s", copy->to, weft_strerror(r));
	copy->temporary[0] = 0;
	sync_dir(copy->dir);
	return 0;
}

void weft__copy_fini(struct weft__copy *copy)
{
	if (copy->temporary[0])
		unlinkat(copy->dir, copy->temporary, 0);
	if (copy->dir >= 0)
		close(copy->dir);
	copy->dir = -1;
	if (copy->fd >= 0)
		close(copy->fd);
	copy->fd = -1;
	weft__writer_fini(&copy->writer);
	weft__encoder_close(copy->encoder);
	copy->encoder = NULL;
}
