/*
 * The server on the plugin's Unix socket. Each of a few threads serves one client at a time, so a `load` that waits for
 * OpenSM does not block other requests, and a slow or silent client blocks only itself. None of this runs in a thread of
 * OpenSM's.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bridge.h"
#include "clock.h"
#include "listener.h"
#include "number.h"
#include "thread.h"

#define THREADS 8
#define REQUEST_SIZE 64
#define ANSWER_SIZE 8192
#define AWAIT_SECONDS 30 /* seconds that a client may wait for a call; then the answer is 0 */
#define CALL_INTERVAL_MS 20 /* ms between two looks for a call */
#define CLIENT_PATIENCE_MS 5000 /* ms that a client may take to send its request, or to read the answer */

struct server {
	struct bridge *bridge;
	int listener, stop;
	ino_t inode; /* of the socket's file: a file with another inode is not removed */
	unsigned running;
	pthread_t thread[THREADS];
};

/* True if `file` is ready for `events`; false on shutdown, on error, and when `patience` ms are over. */
static bool ready(const struct server *s, int file, short events, int patience)
{
	struct pollfd wait[] = {{.fd = file, .events = events}, {.fd = s->stop, .events = POLLIN}};
	int count;

	do
		count = poll(wait, 2, patience);
	while (count < 0 && errno == EINTR);
	return count > 0 && !wait[1].revents && wait[0].revents & (events | POLLHUP);
}

static bool read_request(const struct server *s, int client, char *request)
{
	size_t length = 0;

	while (length < REQUEST_SIZE && ready(s, client, POLLIN, CLIENT_PATIENCE_MS)) {
		const ssize_t got = recv(client, request + length, REQUEST_SIZE - length, 0);
		char *end;

		if (got <= 0)
			return false;
		end = memchr(request + length, '\n', (size_t)got);
		length += (size_t)got;
		if (end) {
			*end = '\0';
			return true;
		}
	}
	return false;
}

static void send_answer(const struct server *s, int client, const char *text, size_t length)
{
	while (length && ready(s, client, POLLOUT, CLIENT_PATIENCE_MS)) {
		const ssize_t sent = send(client, text, length, MSG_NOSIGNAL);

		if (sent < 0)
			return;
		text += sent;
		length -= (size_t)sent;
	}
}

/* Waits until a routing calls the agent, the client leaves, or AWAIT_SECONDS is over. True: answer the client. */
static bool wait_for_call(const struct server *s, int client, unsigned answered, unsigned *number)
{
	struct pollfd wait[] = {{.fd = client, .events = POLLIN}, {.fd = s->stop, .events = POLLIN}};
	const double end = clock_seconds() + AWAIT_SECONDS;

	while (!(*number = agent_call_number(s->bridge, answered)) && clock_seconds() < end) {
		if (poll(wait, 2, CALL_INTERVAL_MS) < 0 && errno != EINTR)
			return false;
		if (wait[0].revents || wait[1].revents) /* it has left, or talks out of turn */
			return false;
	}
	return true;
}

/* `await CALL`: a client that has answered CALL (0: none) waits for the next one. */
static bool answer_await(const struct server *s, int client, const char *arguments, char *json)
{
	unsigned number = 0;
	uint64_t answered;
	bool good;

	if (!number_within(arguments, 0, UINT32_MAX, &answered)) {
		snprintf(json, ANSWER_SIZE, "{\"ok\":false,\"code\":\"other\",\"error\":\"await needs the number of "
					    "the last call, or 0\"}");
		return true;
	}
	if (!agent_call_listen(s->bridge)) {
		snprintf(json, ANSWER_SIZE, "{\"ok\":false,\"code\":\"busy\",\"error\":\"%d clients wait for a call "
					    "already\"}", MOST_LISTENING);
		return true;
	}
	good = wait_for_call(s, client, (unsigned)answered, &number);
	agent_call_leave(s->bridge);
	snprintf(json, ANSWER_SIZE, "{\"ok\":true,\"call\":%u}", number);
	return good;
}

static void serve(const struct server *s, int client)
{
	char request[REQUEST_SIZE], json[ANSWER_SIZE];
	size_t length;
	bool answer = read_request(s, client, request);

	if (answer && !strncmp(request, "await ", 6))
		answer = answer_await(s, client, request + 6, json);
	else if (answer)
		request_answer(s->bridge, request, json, sizeof(json) - 1);
	if (answer) {
		length = strlen(json);
		json[length++] = '\n';
		send_answer(s, client, json, length);
	}
	close(client);
}

static void *serve_all(void *argument)
{
	const struct server *s = argument;

	for (;;) {
		struct pollfd wait[] = {{.fd = s->listener, .events = POLLIN}, {.fd = s->stop, .events = POLLIN}};
		struct reason unused;

		if (poll(wait, 2, 1000) < 0 && errno != EINTR)
			return NULL;
		events_follow(s->bridge);
		if (wait[1].revents)
			return NULL;
		if (sigusr2_take())
			(void)reload(s->bridge, 0, "any", &unused); /* it logs the result */
		/* The listener is nonblocking, because another thread may accept the client first. */
		const int client = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (client >= 0)
			serve(s, client);
		else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM)
			poll(&wait[1], 1, 100); /* out of descriptors: do not spin */
	}
}

static bool listen_at(struct server *s, const struct options *o, struct reason *why)
{
	if (mkdir(o->folder, 0755) && errno != EEXIST)
		REFUSE("cannot make %.300s: %s", o->folder, strerror(errno));
	s->listener = listener_open(o->socket_path, o->group, &s->inode, why);
	return s->listener >= 0;
}

bool server_open(struct bridge *b, struct reason *why)
{
	struct server *s = calloc(1, sizeof(*s));

	if (!s)
		REFUSE("no memory");
	b->server = s;
	*s = (struct server){.bridge = b, .listener = -1, .stop = eventfd(0, EFD_CLOEXEC)};
	if (s->stop < 0)
		REFUSE("no eventfd: %s", strerror(errno));
	if (!listen_at(s, &b->options, why))
		return false;
	while (s->running < THREADS && !thread_start(&s->thread[s->running], serve_all, s))
		s->running++;
	if (!s->running)
		REASON(why, "cannot start a thread");
	return s->running > 0;
}

/* May be called after a failed server_open(), too. No thread of the server is left when it returns. */
void server_close(struct bridge *b)
{
	struct server *s = b->server;
	const uint64_t increment = 1;
	struct stat info;

	if (!s)
		return;
	if (s->stop >= 0 && write(s->stop, &increment, sizeof(increment)) < 0)
		return; /* cannot happen; but it is better to leak than to unload code that still runs */
	while (s->running)
		pthread_join(s->thread[--s->running], NULL);
	if (s->listener >= 0) {
		close(s->listener);
		if (s->inode && !stat(b->options.socket_path, &info) && info.st_ino == s->inode)
			unlink(b->options.socket_path);
	}
	if (s->stop >= 0)
		close(s->stop);
	free(s);
	b->server = NULL;
}
