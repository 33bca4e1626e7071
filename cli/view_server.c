/* SPDX-License-Identifier: Apache-2.0 */
/* The server of the page: on 127.0.0.1, for who knows the token, and only segments that the command line names.
 * libmicrohttpd is opened when it is needed, so that no other command depends on it. */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "cli.h"
#include "view.h"

#define LIBRARY "libmicrohttpd.so.12"
#define THREADS 4
#define CONNECTIONS 256
/* Of silence until a connection is closed: before a request that has the token, and after. */
#define STRANGER_S 5u
#define IDLE_S 120u

/* Each is called as in microhttpd.h. */
#define CALLS(X)                                                                                                       \
	X(MHD_start_daemon)                                                                                            \
	X(MHD_stop_daemon)                                                                                             \
	X(MHD_get_daemon_info)                                                                                         \
	X(MHD_lookup_connection_value)                                                                                 \
	X(MHD_create_response_from_buffer)                                                                             \
	X(MHD_create_response_from_fd_at_offset64)                                                                     \
	X(MHD_add_response_header)                                                                                     \
	X(MHD_queue_response)                                                                                          \
	X(MHD_set_connection_option)                                                                                   \
	X(MHD_destroy_response)

static struct {
#define X(name) __typeof__(name) *name;
	CALLS(X)
#undef X
} http;

struct server {
	struct view_files *files;
	struct view_query *query;
	unsigned port;
	char token[VIEW_TOKEN + 1];
	pthread_mutex_t naming;
	char *names; /* as of names_turn */
	size_t names_bytes;
	uint64_t names_turn;
};

/* The page's script is its own file, and WebAssembly is the only thing that it may compile. */
static const char policy[] = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src blob:; style-src "
			     "'self'; img-src 'self' data: "
			     "blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

static bool load_library(void)
{
	void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);

	if (!library)
		return false;
#define X(name)                                                                                                        \
	*(void **)&http.name = dlsym(library, #name);                                                                  \
	if (!http.name)                                                                                                \
		return false;
	CALLS(X)
#undef X
	return true;
}

static enum MHD_Result answer(struct MHD_Connection *connection, unsigned status, struct MHD_Response *response,
			      const char *type)
{
	static const char *const headers[][2] = {
		{"Content-Security-Policy", policy},
		{"X-Content-Type-Options", "nosniff"},
		{"Referrer-Policy", "no-referrer"},
		{"Cache-Control", "no-store"},
		{"Cross-Origin-Opener-Policy", "same-origin"},
		{"Cross-Origin-Resource-Policy", "same-origin"},
		{"X-Frame-Options", "DENY"},
	};
	enum MHD_Result rc;
	size_t i;

	if (!response)
		return MHD_NO;
	for (i = 0; i < sizeof(headers) / sizeof(headers[0]); i++)
		http.MHD_add_response_header(response, headers[i][0], headers[i][1]);
	http.MHD_add_response_header(response, "Content-Type", type);
	rc = http.MHD_queue_response(connection, status, response);
	http.MHD_destroy_response(response);
	return rc;
}

static enum MHD_Result say(struct MHD_Connection *connection, unsigned status, const char *text)
{
	return answer(connection, status,
		      http.MHD_create_response_from_buffer(strlen(text), (void *)(uintptr_t)text,
							   MHD_RESPMEM_PERSISTENT),
		      "text/plain; charset=utf-8");
}

static const char *header(struct MHD_Connection *connection, const char *name)
{
	return http.MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

static enum MHD_Result give_bundle(struct MHD_Connection *connection, const struct view_file *file)
{
	const char *accepts = header(connection, "Accept-Encoding");
	struct MHD_Response *response;
	char *plain;

	if (accepts && strstr(accepts, "gzip")) {
		response = http.MHD_create_response_from_buffer(file->gzip_bytes, (void *)(uintptr_t)file->gzip,
								MHD_RESPMEM_PERSISTENT);
		if (response)
			http.MHD_add_response_header(response, "Content-Encoding", "gzip");
		return answer(connection, MHD_HTTP_OK, response, file->type);
	}
	plain = view_bundle_plain(file);
	if (!plain)
		return say(connection, MHD_HTTP_INTERNAL_SERVER_ERROR, "out of memory\n");
	return answer(connection, MHD_HTTP_OK,
		      http.MHD_create_response_from_buffer(file->bytes, plain, MHD_RESPMEM_MUST_FREE), file->type);
}

static enum MHD_Result give_list(struct server *server, struct MHD_Connection *connection)
{
	char *text = NULL;
	size_t bytes = 0;
	FILE *out = open_memstream(&text, &bytes);
	int rc = out ? 0 : -ENOMEM;

	pthread_mutex_lock(&server->files->lock);
	if (rc == 0)
		rc = view_files_look(server->files);
	if (rc == 0)
		rc = view_files_json(server->files, out);
	pthread_mutex_unlock(&server->files->lock);
	if (!out || fclose(out) != 0 || rc < 0) {
		free(text);
		return say(connection, MHD_HTTP_INTERNAL_SERVER_ERROR, "out of memory\n");
	}
	return answer(connection, MHD_HTTP_OK, http.MHD_create_response_from_buffer(bytes, text, MHD_RESPMEM_MUST_FREE),
		      "application/json");
}

static enum MHD_Result give_segment(struct server *server, struct MHD_Connection *connection, uint64_t index)
{
	uint64_t size = 0, from = 0, bytes;
	struct MHD_Response *response;
	char range[80];
	int fd, asked;

	pthread_mutex_lock(&server->files->lock);
	fd = index > SIZE_MAX ? -ENOENT : view_files_open(server->files, (size_t)index, &size);
	pthread_mutex_unlock(&server->files->lock);
	if (fd < 0)
		return say(connection, MHD_HTTP_NOT_FOUND, "this segment is not there any more\n");
	bytes = size;
	asked = view_request_range(header(connection, "Range"), size, &from, &bytes);
	if (asked < 0) {
		close(fd);
		return say(connection, MHD_HTTP_RANGE_NOT_SATISFIABLE, "the segment is shorter than that\n");
	}
	response = http.MHD_create_response_from_fd_at_offset64(bytes, fd, from);
	if (!response) {
		close(fd);
		return MHD_NO;
	}
	http.MHD_add_response_header(response, "Accept-Ranges", "bytes");
	if (asked > 0) {
		snprintf(range, sizeof(range), "bytes %llu-%llu/%llu", (unsigned long long)from,
			 (unsigned long long)(from + bytes - 1), (unsigned long long)size);
		http.MHD_add_response_header(response, "Content-Range", range);
	}
	return answer(connection, asked > 0 ? MHD_HTTP_PARTIAL_CONTENT : MHD_HTTP_OK, response,
		      "application/octet-stream");
}

/* Looked up once for what is there; again when that has changed. With the lock held. */
static void find_names(struct server *server)
{
	uint64_t turn;
	FILE *out;

	pthread_mutex_lock(&server->files->lock);
	turn = server->files->turns;
	pthread_mutex_unlock(&server->files->lock);
	if (server->names && server->names_turn == turn)
		return;
	free(server->names);
	server->names = NULL;
	server->names_turn = turn;
	out = open_memstream(&server->names, &server->names_bytes);
	if (!out)
		return;
	(void)view_names_write(server->files, out);
	fclose(out);
}

/* While the browser starts. */
static void *find_names_early(void *data)
{
	struct server *server = data;

	pthread_mutex_lock(&server->naming);
	find_names(server);
	pthread_mutex_unlock(&server->naming);
	return NULL;
}

static enum MHD_Result give_names(struct server *server, struct MHD_Connection *connection)
{
	enum MHD_Result rc;

	pthread_mutex_lock(&server->naming);
	find_names(server);
	rc = server->names ? answer(connection, MHD_HTTP_OK,
				    http.MHD_create_response_from_buffer(server->names_bytes, server->names,
									 MHD_RESPMEM_MUST_COPY),
				    "text/plain; charset=utf-8")
			   : say(connection, MHD_HTTP_INTERNAL_SERVER_ERROR, "out of memory\n");
	pthread_mutex_unlock(&server->naming);
	return rc;
}

/* A statement that is on its way here. */
struct statement {
	size_t n; /* more than fits: it is refused */
	char sql[VIEW_SQL_BYTES + 1];
};

static enum MHD_Result give_json(struct MHD_Connection *connection, FILE *out, char **text, size_t *bytes, int rc)
{
	if (out && fclose(out) == 0 && rc == 0)
		return answer(connection, MHD_HTTP_OK,
			      http.MHD_create_response_from_buffer(*bytes, *text, MHD_RESPMEM_MUST_FREE),
			      "application/json");
	free(*text);
	if (rc == -EBUSY)
		return say(connection, MHD_HTTP_SERVICE_UNAVAILABLE, "another statement is still running\n");
	return say(connection, MHD_HTTP_INTERNAL_SERVER_ERROR, "out of memory\n");
}

static enum MHD_Result give_rows(struct server *server, struct MHD_Connection *connection, struct statement *statement)
{
	size_t bytes = 0;
	char *text = NULL;
	FILE *out;
	int rc;

	if (statement->n > VIEW_SQL_BYTES)
		return say(connection, MHD_HTTP_CONTENT_TOO_LARGE, "a statement has up to 65536 bytes\n");
	if (memchr(statement->sql, 0, statement->n))
		return say(connection, MHD_HTTP_BAD_REQUEST, "a statement has no zero bytes\n");
	statement->sql[statement->n] = 0;
	out = open_memstream(&text, &bytes);
	rc = out ? view_query_run(server->query, statement->sql, out) : -ENOMEM;
	return give_json(connection, out, &text, &bytes, rc);
}

static enum MHD_Result give_saved(struct MHD_Connection *connection)
{
	size_t bytes = 0;
	char *text = NULL;
	FILE *out = open_memstream(&text, &bytes);

	if (out)
		view_query_saved(out);
	return give_json(connection, out, &text, &bytes, out ? 0 : -ENOMEM);
}

static enum MHD_Result give(struct server *server, struct MHD_Connection *connection, const char *rest)
{
	static const char api[] = "api/";
	const struct view_file *file;
	uint64_t index;

	if (strncmp(rest, api, sizeof(api) - 1) == 0) {
		rest += sizeof(api) - 1;
		if (strcmp(rest, "files") == 0)
			return give_list(server, connection);
		if (strcmp(rest, "names") == 0)
			return give_names(server, connection);
		if (strcmp(rest, "questions") == 0)
			return give_saved(connection);
		if (strcmp(rest, "query") == 0)
			return say(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "send the statement by POST\n");
		if (view_request_file(rest, &index))
			return give_segment(server, connection, index);
		return say(connection, MHD_HTTP_NOT_FOUND, "there is no such thing\n");
	}
	file = view_bundle_find(rest[0] ? rest : "index.html");
	return file ? give_bundle(connection, file) : say(connection, MHD_HTTP_NOT_FOUND, "there is no such file\n");
}

/* The state of a request without a body. The library closes the connection of one that is answered at its first call,
 * with the headers, because it did not read all of it. Strangers are answered then. */
static char to_answer;

/* The first call is with the headers, then one for each piece of the body, and one without at the end. */
static enum MHD_Result on_statement(struct server *server, struct MHD_Connection *connection, const char *body,
				    size_t *body_bytes, void **state)
{
	struct statement *statement = *state;

	if (!statement) {
		*state = calloc(1, sizeof(*statement));
		return *state ? MHD_YES : MHD_NO;
	}
	if (*body_bytes == 0)
		return give_rows(server, connection, statement);
	if (statement->n + *body_bytes <= VIEW_SQL_BYTES)
		memcpy(statement->sql + statement->n, body, *body_bytes);
	statement->n = statement->n + *body_bytes <= VIEW_SQL_BYTES ? statement->n + *body_bytes : VIEW_SQL_BYTES + 1;
	*body_bytes = 0;
	return MHD_YES;
}

static void on_end(void *data, struct MHD_Connection *connection, void **state, enum MHD_RequestTerminationCode code)
{
	(void)data;
	(void)connection;
	(void)code;
	if (*state != &to_answer)
		free(*state);
	*state = NULL;
}

static enum MHD_Result on_request(void *data, struct MHD_Connection *connection, const char *url, const char *method,
				  const char *version, const char *body, size_t *body_bytes, void **state)
{
	struct view_request request = {url, header(connection, "Host"), header(connection, "Origin")};
	struct server *server = data;
	const char *rest = "";

	(void)version;
	if (*body_bytes && (!*state || *state == &to_answer)) {
		*body_bytes = 0; /* is read and forgotten */
		return MHD_YES;
	}
	switch (view_request_judge(&request, server->token, server->port, &rest)) {
	case VIEW_BAD_HOST:
		return say(connection, MHD_HTTP_FORBIDDEN, "weft view answers to 127.0.0.1 and localhost only\n");
	case VIEW_BAD_ORIGIN:
		return say(connection, MHD_HTTP_FORBIDDEN, "weft view answers to its own page only\n");
	case VIEW_BAD_TOKEN:
		return say(connection, MHD_HTTP_FORBIDDEN,
			   "the address lacks its token: use the whole line that weft view printed\n");
	case VIEW_ALLOWED:
		http.MHD_set_connection_option(connection, MHD_CONNECTION_OPTION_TIMEOUT, IDLE_S);
		break;
	}
	if (strcmp(method, "POST") == 0 && strcmp(rest, "api/query") == 0)
		return on_statement(server, connection, body, body_bytes, state);
	if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
		return say(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "weft view only shows\n");
	if (!*state) {
		*state = &to_answer;
		return MHD_YES;
	}
	return give(server, connection, rest);
}

static bool make_token(char token[VIEW_TOKEN + 1])
{
	unsigned char random[VIEW_TOKEN / 2];
	size_t i;

	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		return false;
	for (i = 0; i < sizeof(random); i++)
		snprintf(token + 2 * i, 3, "%02x", random[i]);
	return true;
}

static struct MHD_Daemon *start(struct server *server, unsigned port)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	const union MHD_DaemonInfo *info;
	struct MHD_Daemon *daemon;

	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	daemon =
		http.MHD_start_daemon(MHD_USE_INTERNAL_POLLING_THREAD, (uint16_t)port, NULL, NULL, on_request, server,
				      MHD_OPTION_SOCK_ADDR, &at, MHD_OPTION_THREAD_POOL_SIZE, (unsigned)THREADS,
				      MHD_OPTION_CONNECTION_TIMEOUT, STRANGER_S, MHD_OPTION_CONNECTION_LIMIT,
				      (unsigned)CONNECTIONS, MHD_OPTION_NOTIFY_COMPLETED, on_end, NULL, MHD_OPTION_END);
	info = daemon ? http.MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_BIND_PORT) : NULL;
	server->port = info ? info->port : 0;
	return daemon;
}

static int wait_for_end(void)
{
	sigset_t ends;
	int number = 0;

	sigemptyset(&ends);
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGTERM);
	sigaddset(&ends, SIGHUP);
	while (sigwait(&ends, &number) != 0)
		;
	return number;
}

int view_serve(const struct view_server_opts *opts)
{
	struct server server = {.files = opts->files, .naming = PTHREAD_MUTEX_INITIALIZER};
	struct view_browser browser = {.fd = -1, .parent = -1};
	struct MHD_Daemon *daemon;
	pthread_t early;
	bool is_early;
	char url[128];
	sigset_t ends;

	if (!load_library())
		return cli_fail("weft view needs " LIBRARY
				": apt-get install libmicrohttpd12, or write a file instead: "
				"weft view --html OUT.html PATH");
	if (!make_token(server.token))
		return cli_fail("no random numbers for the token: %s", strerror(errno));
	server.query = view_query_new(opts->files);
	if (!server.query)
		return cli_fail("out of memory");
	/* Before there are threads, so that none of them gets the signals. */
	sigemptyset(&ends);
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGTERM);
	sigaddset(&ends, SIGHUP);
	pthread_sigmask(SIG_BLOCK, &ends, NULL);
	daemon = start(&server, opts->port);
	if (!daemon) {
		view_query_free(server.query);
		return cli_fail("cannot listen on 127.0.0.1:%u: %s; --port 0 takes any that is free", opts->port,
				strerror(errno));
	}
	snprintf(url, sizeof(url), "http://127.0.0.1:%u/%s/", server.port, server.token);
	printf("%s\nOpen this in a browser; Ctrl-C ends it.\n", url);
	fflush(stdout);
	is_early = pthread_create(&early, NULL, find_names_early, &server) == 0;
	if (opts->open)
		view_browser_open(&browser, url);
	(void)wait_for_end();
	view_browser_close(&browser);
	view_query_end(server.query);
	if (pthread_mutex_trylock(&server.naming) != 0) {
		fflush(stdout);
		_exit(CLI_OK); /* names are being looked up, perhaps over a network: nobody wants them any more */
	}
	pthread_mutex_unlock(&server.naming);
	http.MHD_stop_daemon(daemon);
	if (is_early)
		pthread_join(early, NULL);
	free(server.names);
	view_query_free(server.query);
	return CLI_OK;
}
