/* SPDX-License-Identifier: Apache-2.0 */
/* What a descriptor is that a long wait was for: a file by its path, a pipe, a socket with its peer. It is looked up
 * by the thread that waited, right after the call, when the wait is recorded by itself: in the program's own table,
 * and before the number means something else.
 *
 * That may be in a signal handler, where nothing can be allocated. So texts are put into a table, each place of which
 * is the id of a string that was reserved for it, and the collector defines those strings later. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/late.h"
#include "base/place.h"
#include "preload.h"

#define TEXTS 1024 /* a power of two */
#define TEXT_BYTES 124
#define PROBES 16
#define CACHE 256

enum text_state { TEXT_FREE, TEXT_BUSY, TEXT_READY, TEXT_DEFINED };

static struct text {
	uint32_t state;
	char text[TEXT_BYTES];
} texts[TEXTS] LARGE_TABLE;
static uint32_t n_texts; /* that were ever taken: what is only looked at is a page for each fork to copy, too */
static uint32_t first_id;

struct line {
	char text[TEXT_BYTES];
	size_t n;
};

/* Of a long text the end matters more: a file is known by its name. */
static void say(struct line *line, const char *text, size_t n)
{
	size_t room = sizeof(line->text) - 1 - line->n;

	if (n > room && room > 3) {
		memcpy(line->text + line->n, "...", 3);
		memcpy(line->text + line->n + 3, text + n - (room - 3), room - 3);
		n = room;
	} else {
		n = n < room ? n : room;
		memcpy(line->text + line->n, text, n);
	}
	line->n += n;
	line->text[line->n] = 0;
}

static void say_text(struct line *line, const char *text)
{
	say(line, text, strlen(text));
}

static void say_number(struct line *line, unsigned number)
{
	char digits[12];
	size_t at = sizeof(digits);

	do
		digits[--at] = (char)('0' + number % 10);
	while (number /= 10);
	say(line, digits + at, sizeof(digits) - at);
}

union address {
	struct sockaddr any;
	struct sockaddr_in four;
	struct sockaddr_in6 six;
	struct sockaddr_un local;
	struct sockaddr_storage room;
};

static void say_internet(struct line *line, bool is_four, const union address *address)
{
	const struct sockaddr_in6 *six = &address->six;
	const struct sockaddr_in *four = &address->four;
	bool mapped = !is_four && IN6_IS_ADDR_V4MAPPED(&six->sin6_addr);
	char text[INET6_ADDRSTRLEN] = "";

	if (is_four)
		inet_ntop(AF_INET, &four->sin_addr, text, sizeof(text));
	else if (mapped)
		inet_ntop(AF_INET, &six->sin6_addr.s6_addr[12], text, sizeof(text));
	else
		inet_ntop(AF_INET6, &six->sin6_addr, text, sizeof(text));
	say_text(line, is_four || mapped ? "" : "[");
	say_text(line, text);
	say_text(line, is_four || mapped ? ":" : "]:");
	say_number(line, ntohs(is_four ? four->sin_port : six->sin6_port));
}

static bool say_unix(struct line *line, const union address *address, socklen_t bytes)
{
	const struct sockaddr_un *local = &address->local;
	size_t n = bytes > offsetof(struct sockaddr_un, sun_path) ? bytes - offsetof(struct sockaddr_un, sun_path) : 0;

	if (n == 0)
		return false;
	if (local->sun_path[0] == 0) { /* a name that is no file */
		say_text(line, " @");
		say(line, local->sun_path + 1, strnlen(local->sun_path + 1, n - 1));
	} else {
		say_text(line, " ");
		say(line, local->sun_path, strnlen(local->sun_path, n));
	}
	return true;
}

static int option(int fd, int name)
{
	int value = 0;
	socklen_t bytes = sizeof(value);

	return getsockopt(fd, SOL_SOCKET, name, &value, &bytes) == 0 ? value : -1;
}

/* TO: where a connect went, which may have failed. */
static void say_socket(struct line *line, int fd, const struct sockaddr *to, socklen_t to_bytes)
{
	union address address = {.room = {0}};
	int domain = option(fd, SO_DOMAIN), type = option(fd, SO_TYPE);
	socklen_t bytes = sizeof(address);
	bool known, listens = option(fd, SO_ACCEPTCONN) > 0;

	if (to && to_bytes >= sizeof(to->sa_family) && to_bytes <= sizeof(address)) {
		memcpy(&address, to, to_bytes);
		bytes = to_bytes;
		known = to->sa_family == domain;
	} else {
		known = !listens && getpeername(fd, &address.any, &bytes) == 0;
	}
	if (domain == AF_INET || domain == AF_INET6) {
		say_text(line, type == SOCK_STREAM ? "tcp" : type == SOCK_DGRAM ? "udp" : "raw");
		if (!known) {
			bytes = sizeof(address);
			known = getsockname(fd, &address.any, &bytes) == 0;
			say_text(line, listens ? ", listens on" : known ? ", from" : "");
		}
		say_text(line, known ? " " : "");
		if (known)
			say_internet(line, domain == AF_INET, &address);
	} else if (domain == AF_UNIX) {
		say_text(line, listens ? "unix socket, listens on" : "unix socket");
		if (known && say_unix(line, &address, bytes))
			return;
		bytes = sizeof(address);
		if (getsockname(fd, &address.any, &bytes) == 0)
			say_unix(line, &address, bytes);
	} else {
		say_text(line, domain == AF_NETLINK ? "netlink" : "socket");
	}
}

/* "anon_inode:[eventfd]" is an eventfd. */
static void say_inode(struct line *line, const char *name, size_t n)
{
	if (n > 2 && name[0] == '[' && name[n - 1] == ']') {
		name++;
		n -= 2;
	}
	if (n == 9 && memcmp(name, "eventpoll", 9) == 0)
		say_text(line, "epoll");
	else
		say(line, name, n);
}

static bool begins(const char *text, size_t n, const char *with, size_t *bytes)
{
	*bytes = strlen(with);
	return n >= *bytes && memcmp(text, with, *bytes) == 0;
}

static void say_descriptor(struct line *line, int fd, const struct sockaddr *to, socklen_t to_bytes)
{
	struct line path = {.n = 0};
	char link[512];
	struct stat st;
	size_t bytes;
	ssize_t n;

	say_text(&path, "/proc/thread-self/fd/");
	say_number(&path, (unsigned)fd);
	n = readlink(path.text, link, sizeof(link));
	if (n < 0 && fstat(fd, &st) == 0 && !S_ISSOCK(st.st_mode)) /* no /proc */
		say_text(line, S_ISFIFO(st.st_mode) ? "pipe" : S_ISREG(st.st_mode) ? "file" : "");
	else if (n < 0 || begins(link, (size_t)n, "socket:", &bytes))
		say_socket(line, fd, to, to_bytes);
	else if (begins(link, (size_t)n, "pipe:", &bytes))
		say_text(line, "pipe");
	else if (begins(link, (size_t)n, "anon_inode:", &bytes))
		say_inode(line, link + bytes, (size_t)n - bytes);
	else
		say(line, link, (size_t)n);
}

static uint32_t id_of(const struct line *line)
{
	uint32_t hash = 2166136261u, i, at, state;

	for (i = 0; i < line->n; i++)
		hash = (hash ^ (uint8_t)line->text[i]) * 16777619u;
	for (i = 0; i < PROBES; i++) {
		struct text *text = &texts[at = (hash + i) % TEXTS];

		state = TEXT_FREE;
		if (__atomic_compare_exchange_n(&text->state, &state, TEXT_BUSY, false, __ATOMIC_ACQUIRE,
						__ATOMIC_ACQUIRE)) {
			memcpy(text->text, line->text, line->n + 1);
			__atomic_store_n(&text->state, TEXT_READY, __ATOMIC_RELEASE);
			__atomic_fetch_add(&n_texts, 1, __ATOMIC_RELEASE);
			return first_id + at;
		}
		if (state != TEXT_BUSY && strcmp(text->text, line->text) == 0)
			return first_id + at;
	}
	return 0;
}

/* What was found for a descriptor, as long as it is the same file or socket: 48 bits of a hash, and the place of its
 * text plus 1. A path that was renamed meanwhile is the old one. */
static uint64_t cache[CACHE];

static uint64_t cache_key(int fd)
{
	struct stat st;
	uint64_t key;

	if (fstat(fd, &st) < 0)
		return 0;
	key = ((uint64_t)st.st_ino ^ (uint64_t)st.st_dev << 32 ^ (uint64_t)fd << 16) * UINT64_C(0x9e3779b97f4a7c15);
	return (key | UINT64_C(1) << 63) >> 16 << 16;
}

static uint32_t find(int fd, const struct sockaddr *to, socklen_t to_bytes)
{
	uint64_t key = cache_key(fd), *at = &cache[(unsigned)fd % CACHE], word = __atomic_load_n(at, __ATOMIC_RELAXED);
	struct line line = {.n = 0};
	uint32_t id;

	if (key && !to && word >> 16 << 16 == key)
		return first_id + (uint32_t)(word & 0xffff) - 1;
	say_descriptor(&line, fd, to, to_bytes);
	id = line.n ? id_of(&line) : 0;
	if (id && key)
		__atomic_store_n(at, key | (id - first_id + 1), __ATOMIC_RELAXED);
	return id;
}

static uint32_t describe(uint32_t name, int fd)
{
	struct preload_thread *t = &weft__preload_thread;
	bool connects = name == weft__preload_names[PRELOAD_NAME_connect];
	uint32_t id;

	/* What was closed is not there any more, or is something else. */
	if (t->quiet || name == weft__preload_names[PRELOAD_NAME_close] ||
	    name == weft__preload_names[PRELOAD_NAME_fclose])
		return 0;
	t->quiet++;
	id = find(fd, connects ? t->to : NULL, connects ? t->to_bytes : 0);
	t->quiet--;
	return id;
}

static void tend(void)
{
	static uint32_t n_defined;
	uint32_t n = __atomic_load_n(&n_texts, __ATOMIC_ACQUIRE);

	for (uint32_t i = 0; i < TEXTS && __atomic_load_n(&n_defined, __ATOMIC_RELAXED) < n; i++) {
		uint32_t ready = TEXT_READY;

		if (__atomic_load_n(&texts[i].state, __ATOMIC_ACQUIRE) == TEXT_READY &&
		    weft__late_string(first_id + i, texts[i].text) == 0 &&
		    __atomic_compare_exchange_n(&texts[i].state, &ready, TEXT_DEFINED, false, __ATOMIC_RELAXED,
						__ATOMIC_RELAXED))
			__atomic_fetch_add(&n_defined, 1, __ATOMIC_RELAXED);
	}
	weft__preload_unseen_tend();
}

void weft__preload_describe_init(void)
{
	first_id = weft__late_strings(TEXTS);
	if (first_id)
		weft__late_describe = describe;
	weft__late_tend = tend;
}
