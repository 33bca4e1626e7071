/* SPDX-License-Identifier: Apache-2.0 */
/* The page and its segments as one file. inline.html of the bundle has lines that say where the parts go; scripts and
 * styles have their hashes in its policy, and data lies in elements that no browser runs. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/dir.h"
#include "cli.h"
#include "segment/format.h"
#include "view.h"

struct base64 {
	FILE *out;
	unsigned char rest[3];
	size_t n;
};

static void group(FILE *out, const unsigned char *b, size_t n)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	unsigned bits = (unsigned)b[0] << 16 | (n > 1 ? (unsigned)b[1] << 8 : 0) | (n > 2 ? b[2] : 0);

	fputc(digits[bits >> 18], out);
	fputc(digits[bits >> 12 & 63], out);
	fputc(n > 1 ? digits[bits >> 6 & 63] : '=', out);
	fputc(n > 2 ? digits[bits & 63] : '=', out);
}

static void encode(struct base64 *to, const unsigned char *bytes, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++) {
		to->rest[to->n++] = bytes[i];
		if (to->n == 3) {
			group(to->out, to->rest, 3);
			to->n = 0;
		}
	}
}

static void encode_end(struct base64 *to)
{
	if (to->n)
		group(to->out, to->rest, to->n);
	to->n = 0;
}

static void element(FILE *out, const char *id, const char *more)
{
	fprintf(out, "<script type=\"application/octet-stream\" id=\"%s\"%s>", id, more);
}

/* '<' could end the element. */
static void write_json(FILE *out, const char *text)
{
	for (; *text; text++)
		if (*text == '<')
			fputs("\\u003c", out);
		else
			fputc(*text, out);
}

static int write_segment(FILE *out, struct view_files *files, size_t index)
{
	struct base64 to = {.out = out};
	unsigned char bytes[65536];
	uint64_t size;
	char id[48];
	ssize_t n;
	int fd = view_files_open(files, index, &size);

	if (fd < 0)
		return fd;
	snprintf(id, sizeof(id), "weft-file-%zu", index);
	element(out, id, "");
	/* One that is being written grows meanwhile. */
	for (n = 1; n > 0 && size > 0 && !ferror(out); size -= (uint64_t)n) {
		n = read(fd, bytes, size < sizeof(bytes) ? (size_t)size : sizeof(bytes));
		if (n < 0)
			break;
		encode(&to, bytes, (size_t)n);
	}
	encode_end(&to);
	fputs("</script>\n", out);
	close(fd);
	return n < 0 ? -EIO : 0;
}

static int write_data(FILE *out, struct view_files *files)
{
	const struct view_file *wasm = view_bundle_find("weft.wasm");
	struct base64 to = {.out = out};
	char *text = NULL;
	size_t bytes = 0, i;
	FILE *memory = open_memstream(&text, &bytes);
	int rc = memory && wasm ? view_files_json(files, memory) : -ENOMEM;

	if (memory)
		fclose(memory);
	fputs("<script type=\"application/json\" id=\"weft-files\">", out);
	if (rc == 0)
		write_json(out, text);
	fputs("</script>\n", out);
	free(text);
	text = NULL;
	memory = open_memstream(&text, &bytes);
	if (rc == 0)
		rc = memory ? view_names_write(files, memory) : -ENOMEM;
	if (memory)
		fclose(memory);
	element(out, "weft-names", "");
	if (rc == 0)
		encode(&to, (const unsigned char *)text, bytes);
	encode_end(&to);
	fputs("</script>\n", out);
	free(text);
	for (i = 0; i < files->n && rc == 0; i++)
		if (files->at[i].there)
			rc = write_segment(out, files, i);
	if (rc < 0)
		return rc;
	element(out, "weft-wasm", " data-encoding=\"gzip\"");
	encode(&to, wasm->gzip, wasm->gzip_bytes);
	encode_end(&to);
	fputs("</script>\n", out);
	return 0;
}

static int write_plain(FILE *out, const char *name)
{
	const struct view_file *file = view_bundle_find(name);
	char *plain = file ? view_bundle_plain(file) : NULL;

	if (!plain)
		return -ENOMEM;
	fwrite(plain, 1, file->bytes, out);
	free(plain);
	return 0;
}

static int write_page(FILE *out, struct view_files *files)
{
	static const char *const marks[] = {"@STYLE@", "@DATA@", "@SCRIPT@"};
	const struct view_file *file = view_bundle_find("inline.html");
	char *page = file ? view_bundle_plain(file) : NULL, *at = page, *mark;
	size_t i;
	int rc = page ? 0 : -ENOMEM;

	for (i = 0; i < sizeof(marks) / sizeof(marks[0]) && rc == 0; i++) {
		mark = strstr(at, marks[i]);
		if (!mark) {
			rc = -EINVAL;
			break;
		}
		fwrite(at, 1, (size_t)(mark - at), out);
		rc = i == 0   ? write_plain(out, "app.css")
		     : i == 1 ? write_data(out, files)
			      : write_plain(out, "app.js");
		at = mark + strlen(marks[i]);
	}
	if (rc == 0)
		fputs(at, out);
	free(page);
	return rc;
}

/* Where the page is written: beside its name until it is whole. What is in it is as private as the segments. */
struct target {
	const char *path, *name;
	int dir;
	bool replaces; /* a file of this user's */
	char partial[64];
};

static int refuse(const struct target *to, const char *why)
{
	return cli_fail("cannot write %s: %s; give another FILE", to->path, why);
}

static int target_open(struct target *to, const char *path)
{
	const char *slash = strrchr(path, '/');
	char *dir = slash ? strndup(path, slash == path ? 1 : (size_t)(slash - path)) : strdup(".");
	struct weft_error err = {0};
	struct stat st;
	int rc, fd;

	*to = (struct target){.path = path, .name = slash ? slash + 1 : path};
	to->dir = dir ? weft__dir_open(dir, 0, &err) : -ENOMEM;
	free(dir);
	if (to->dir < 0)
		return cli_fail("cannot write %s: %s", path, err.msg[0] ? err.msg : strerror(-to->dir));
	rc = to->name[0] ? weft__dir_mine(to->dir, to->name, &st) : -EISDIR;
	if (rc < 0 && rc != -ENOENT)
		return refuse(to, "it is there already, and no file of yours with that one name");
	to->replaces = rc == 0;
	fd = to->replaces ? weft__dir_file(to->dir, to->name, O_RDONLY) : -1;
	rc = fd >= 0 && weft__file_marked(fd, SEG_MAGIC);
	if (fd >= 0)
		close(fd);
	return rc ? refuse(to, "it is a segment") : CLI_OK;
}

static void target_name(struct target *to)
{
	uint64_t random = 0;

	(void)!getrandom(&random, sizeof(random), 0); /* so that nobody can take the name before */
	snprintf(to->partial, sizeof(to->partial), ".weft-view-%016llx.html", (unsigned long long)random);
}

static FILE *target_create(struct target *to)
{
	FILE *out;
	int fd;

	fd = weft__dir_create(to->dir, to->partial, FILE_MODE);
	if (fd < 0) {
		errno = -fd;
		return NULL;
	}
	out = fdopen(fd, "w");
	if (!out)
		close(fd);
	return out;
}

/* A file that came meanwhile is not replaced. */
static int target_rename(const struct target *to)
{
	if (!to->replaces)
		return weft__dir_rename(to->dir, to->partial, to->name);
	return renameat(to->dir, to->partial, to->dir, to->name) < 0 ? -errno : 0;
}

static struct target *unfinished; /* of the handler; nobody sees a file that is not whole */

static void on_end(int number)
{
	(void)unlinkat(unfinished->dir, unfinished->partial, 0);
	(void)signal(number, SIG_DFL);
	(void)raise(number); /* comes when the handler has returned */
}

/* Those that are ignored stay so, as under nohup. */
static void catch_ends(struct target *to)
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
	struct sigaction end = {.sa_handler = on_end}, was;
	size_t i;

	unfinished = to ? to : unfinished; /* a signal may still come */
	for (i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (sigaction(numbers[i], NULL, &was) == 0 && was.sa_handler != SIG_IGN)
			(void)sigaction(numbers[i], to ? &end : &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
}

int view_write_html(struct view_files *files, const char *path)
{
	struct target to;
	int rc = target_open(&to, path);
	FILE *out;

	if (rc != CLI_OK)
		return rc;
	target_name(&to);
	catch_ends(&to);
	out = target_create(&to);
	rc = out ? write_page(out, files) : -errno;
	if (rc == 0 && ferror(out))
		rc = -EIO;
	if (out && fclose(out) != 0)
		rc = -errno;
	if (rc == 0)
		rc = target_rename(&to);
	if (rc < 0)
		(void)unlinkat(to.dir, to.partial, 0);
	catch_ends(NULL);
	close(to.dir);
	if (rc < 0)
		return cli_fail("cannot write %s: %s", path, strerror(-rc));
	printf("%s has the page and the trace: open it in a browser, or mail it.\n", path);
	return CLI_OK;
}
