/* SPDX-License-Identifier: Apache-2.0 */
#include "fetch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/dir.h"
#include "base/error.h"
#include "base/text.h"
#include "cli.h"
#include "run.h"
#include "ship/s3.h"
#include "ship/zip.h"

#define TRIES 4
#define PAUSE_NS UINT64_C(200000000) /* doubled after each try */
#define PAUSE_MOST_NS UINT64_C(5000000000)
#define RATIO_MOST 1100 /* of deflate: more than that is no archive that somebody made */

/* The directory of all that is fetched. */
static struct run_dir kept = {.fd = -1};
static unsigned n_fetched;

struct object {
	char *key;
	uint64_t bytes;
};

struct fetch {
	const char *from; /* for messages, without secrets */
	bool jfr;
	bool some_missing;
	char *path; /* of its directory */
	int dir;
	unsigned n_archives;
	size_t n_files; /* that are there now */
	struct weft__s3 s3;
	struct object *at;
	size_t n, cap;
	uint64_t bytes, done;
};

static void remove_kept(void)
{
	if (kept.fd >= 0)
		run_dir_remove(&kept); // NOLINT(bugprone-signal-handler)
}

/* Removing takes system calls only. */
static void on_signal(int number)
{
	remove_kept();
	signal(number, SIG_DFL);
	raise(number);
}

static int keep(void)
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
	size_t i;

	if (kept.fd >= 0)
		return CLI_OK;
	if (run_dir_make(&kept, NULL, NULL) != CLI_OK) {
		kept.fd = -1;
		return CLI_FAILED;
	}
	atexit(remove_kept);
	for (i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (signal(numbers[i], on_signal) == SIG_IGN)
			signal(numbers[i], SIG_IGN);
	return CLI_OK;
}

static bool is_wanted(const struct fetch *f, const char *name)
{
	return weft__ends_in(name, ".weft") || (f->jfr && weft__ends_in(name, ".jfr"));
}

static int missing(struct fetch *f, const char *what, const char *why)
{
	f->some_missing = true;
	return cli_fail("%s%s%s: %s", f->from, *what ? ": " : "", what, why);
}

static int write_file(struct fetch *f, const char *name, const uint8_t *bytes, size_t n)
{
	int fd = weft__dir_create(f->dir, name, FILE_MODE), r = fd < 0 ? fd : 0;

	while (!r && n) {
		ssize_t done = write(fd, bytes, n);

		if (done < 0 && errno != EINTR)
			r = -errno;
		bytes += done > 0 ? done : 0;
		n -= done > 0 ? (size_t)done : 0;
	}
	if (fd >= 0)
		close(fd);
	return r;
}

static void unpack_entry(struct fetch *f, const struct weft__zip_entry *entry)
{
	struct weft_error err = {0};
	char name[ZIP_NAME + 16];
	uint8_t *bytes;
	int r;

	if (!is_wanted(f, entry->name))
		return;
	if (entry->bytes / RATIO_MOST > entry->packed_bytes) {
		missing(f, entry->name, "its length cannot be right");
		return;
	}
	bytes = weft__alloc((size_t)entry->bytes + 1);
	r = bytes ? weft__unzip_get(entry, bytes, &err) : weft__fail(&err, -ENOMEM, "out of memory");
	snprintf(name, sizeof(name), "%u-%s", f->n_archives, entry->name); /* all archives have the same names inside */
	if (!r && (r = write_file(f, name, bytes, (size_t)entry->bytes)) < 0)
		weft__fail(&err, r, "%s", weft_strerror(r));
	if (r)
		missing(f, entry->name, err.msg);
	f->n_files += !r;
	weft__free(bytes);
}

/* What is wanted of the archive, into the directory. */
static void unpack(struct fetch *f, int fd, const char *what)
{
	struct weft__zip_entry entry;
	struct weft_error err = {0};
	struct weft__unzip unzip;
	struct stat st;
	void *bytes = MAP_FAILED;
	int r = 0;

	f->n_archives++;
	if (fstat(fd, &st) == 0 && st.st_size > 0)
		bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (bytes == MAP_FAILED) {
		missing(f, what, "it cannot be read");
		return;
	}
	r = weft__unzip_init(&unzip, bytes, (size_t)st.st_size, &err);
	while (r == 0 && (r = weft__unzip_next(&unzip, &entry, &err)) > 0) {
		unpack_entry(f, &entry);
		r = 0;
	}
	if (r < 0)
		missing(f, what, err.msg);
	munmap(bytes, (size_t)st.st_size);
}

static int fetch_archive(struct fetch *f, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);

	if (fd < 0)
		return cli_fail("%s: %s", path, strerror(errno));
	unpack(f, fd, "");
	close(fd);
	return CLI_OK;
}

static int note_object(const struct weft__s3_object *object, void *data)
{
	struct fetch *f = data;
	struct object *grown;

	if (!is_wanted(f, object->key) && !weft__ends_in(object->key, ".zip"))
		return 0;
	grown = weft__grow(f->at, &f->cap, f->n, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	f->at = grown;
	grown[f->n] = (struct object){weft__strdup(object->key), object->bytes};
	if (!grown[f->n].key)
		return -ENOMEM;
	f->bytes += object->bytes;
	f->n++;
	return 0;
}

static void pause_before(unsigned try_number, uint64_t asked_ns)
{
	uint64_t ns = PAUSE_NS << try_number;
	struct timespec time;

	ns = asked_ns > ns ? asked_ns : ns;
	ns = ns < PAUSE_MOST_NS ? ns : PAUSE_MOST_NS;
	time = (struct timespec){(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
	nanosleep(&time, NULL);
}

/* One try. 0; 1: it is worth another, after `*pause_ns`; or a negative error. */
static int get_once(struct fetch *f, const struct object *object, int fd, uint64_t *pause_ns, struct weft_error *err)
{
	struct weft__s3_request request = {.method = "GET", .key = object->key, .query = "", .to_fd = fd};
	struct weft__http_reply reply;
	struct stat st;
	char code[64];
	int r, passing;

	*pause_ns = 0;
	if (ftruncate(fd, 0) < 0 || lseek(fd, 0, SEEK_SET) < 0)
		return weft__fail(err, -errno, "%s", strerror(errno));
	r = weft__s3_do(&f->s3, &request, &reply, err);
	if (r)
		return r == -EIO ? 1 : r;
	if (reply.status == 200) {
		r = fstat(fd, &st) < 0 || (uint64_t)st.st_size != object->bytes;
		if (r)
			weft__fail(err, -EIO, "it came with another length than it has");
	} else {
		passing = weft__s3_code(&f->s3, &reply, code);
		r = passing || reply.status >= 500 || reply.status == 429 ? 1 : -EIO;
		*pause_ns = reply.retry_after_ns;
		weft__fail(err, -EIO, "status %ld: %s", reply.status, code);
	}
	weft__http_reply_fini(&reply);
	return r;
}

/* A descriptor of the file, or a negative error. */
static int get_object(struct fetch *f, const struct object *object, const char *name, struct weft_error *err)
{
	int fd = weft__dir_create(f->dir, name, FILE_MODE), r = 1;
	uint64_t pause_ns = 0;
	unsigned i;

	if (fd < 0)
		return weft__fail(err, fd, "%s", weft_strerror(fd));
	for (i = 0; i < TRIES && r == 1; i++) {
		if (i)
			pause_before(i - 1, pause_ns);
		r = get_once(f, object, fd, &pause_ns, err);
	}
	if (r == 0)
		return fd;
	close(fd);
	unlinkat(f->dir, name, 0);
	return r < 0 ? r : -EIO;
}

static void fetch_object(struct fetch *f, size_t number)
{
	const struct object *object = &f->at[number];
	const char *slash = strrchr(object->key, '/'), *base = slash ? slash + 1 : object->key;
	struct weft_error err = {0};
	char name[256];
	int fd;

	cli_progress_line("fetching %zu of %zu, %.1f of %.1f MB", number + 1, f->n, (double)f->done / 1e6,
			  (double)f->bytes / 1e6);
	/* Names of segments are used once, those of others may be the same in several folders. */
	snprintf(name, sizeof(name), "%.200s", base);
	if (faccessat(f->dir, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		snprintf(name, sizeof(name), "%zu-%.200s", number, base);
	fd = get_object(f, object, name, &err);
	f->done += object->bytes;
	if (fd < 0) {
		missing(f, object->key, err.msg);
		return;
	}
	if (weft__ends_in(name, ".zip")) {
		unpack(f, fd, object->key);
		unlinkat(f->dir, name, 0);
	} else {
		f->n_files++;
	}
	close(fd);
}

static int fetch_bucket(struct fetch *f, const char *url)
{
	struct weft_error err = {0};
	int r = weft__s3_open(&f->s3, url, NULL, &err), code = CLI_OK;
	size_t i;

	if (!r)
		r = weft__s3_list(&f->s3, f->s3.prefix, note_object, f, &err);
	if (r < 0 && strncmp(err.msg, f->from, strlen(f->from)) == 0)
		code = cli_fail("%s", err.msg);
	else if (r < 0)
		code = cli_fail("%s: %s", f->from, err.msg[0] ? err.msg : weft_strerror(r));
	else if (f->n == 0)
		code = cli_fail("%s: there are no segments below that name; `weft ls %s` lists what is there", f->from,
				f->from);
	for (i = 0; i < f->n && code == CLI_OK; i++)
		fetch_object(f, i);
	cli_progress_end();
	weft__s3_close(&f->s3);
	for (i = 0; i < f->n; i++)
		weft__free(f->at[i].key);
	weft__free(f->at);
	return code;
}

bool cli_fetch_wanted(const char *path)
{
	return strncmp(path, "s3://", 5) == 0 || weft__ends_in(path, ".zip");
}

/* A directory of its own for each. */
static int open_dir(struct fetch *f)
{
	char name[16];
	size_t bytes;

	if (keep() != CLI_OK)
		return CLI_FAILED;
	snprintf(name, sizeof(name), "%u", n_fetched++);
	bytes = strlen(kept.path) + strlen(name) + 2;
	f->path = weft__alloc(bytes);
	if (!f->path)
		return cli_fail("out of memory");
	snprintf(f->path, bytes, "%s/%s", kept.path, name);
	if (mkdirat(kept.fd, name, DIR_MODE) == 0)
		f->dir = openat(kept.fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return f->dir < 0 ? cli_fail("cannot make %s: %s", f->path, strerror(errno)) : CLI_OK;
}

/* Names of the directories are in use until the command ends. */
struct fetched {
	struct fetched *next;
	char *path;
};
static struct fetched *all_fetched;

static int keep_path(char *path)
{
	struct fetched *one = weft__alloc(sizeof(*one));

	if (!one)
		return cli_fail("out of memory");
	*one = (struct fetched){all_fetched, path};
	all_fetched = one;
	return CLI_OK;
}

char *cli_fetch(const char *path, bool jfr, bool *some_missing)
{
	struct fetch f = {.jfr = jfr, .dir = -1};
	char shown[256];
	int code = open_dir(&f);

	weft__url_show(path, shown, sizeof(shown));
	f.from = strncmp(path, "s3://", 5) == 0 ? shown : path;
	if (code == CLI_OK)
		code = f.from == shown ? fetch_bucket(&f, path) : fetch_archive(&f, path);
	if (f.dir >= 0)
		close(f.dir);
	if (code == CLI_OK && f.n_files == 0)
		code = f.some_missing ? CLI_FAILED : cli_fail("%s: there are no segments in it", f.from);
	*some_missing |= f.some_missing;
	if (code == CLI_OK)
		code = keep_path(f.path);
	if (code == CLI_OK)
		return f.path;
	weft__free(f.path);
	return NULL;
}
