/*
 * The status socket. A few threads, each serving one client at a time, so a `load` that waits for
 * OpenSM does not keep others from asking, and a slow or silent client blocks nobody but itself.
 * None of them ever runs in a thread of OpenSM's.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bridge.h"
#include "listener.h"

#define THREADS 8
#define REQUEST_SIZE 64
#define ANSWER_SIZE 8192
#define CLIENT_PATIENCE 5000 /* ms that a client may take to ask, or to read its answer */

struct server {
	struct bridge *bridge;
	int listener, stop;
	ino_t inode; /* of the socket file, to remove only our own */
	unsigned running;
	pthread_t thread[THREADS];
};

/* Signals are for OpenSM's own threads. */
int thread_start(pthread_t *thread, void *(*run)(void *), void *argument)
{
	sigset_t all, before;
	int error;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	error = pthread_create(thread, NULL, run, argument);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return error;
}

/* True when `file` is ready for `events`; false on shutdown, error, or no patience left. */
static bool ready(const struct server *d, int file, short events, int patience)
{
	struct pollfd wait[] = {{.fd = file, .events = events}, {.fd = d->stop, .events = POLLIN}};
	int count;

	do
		count = poll(wait, 2, patience);
	while (count < 0 && errno == EINTR);
	return count > 0 && !wait[1].revents && wait[0].revents & (events | POLLHUP);
}

static bool read_request(const struct server *d, int client, char *request)
{
	size_t length = 0;

	while (length < REQUEST_SIZE && ready(d, client, POLLIN, CLIENT_PATIENCE)) {
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

static void send_answer(const struct server *d, int client, const char *text, size_t length)
{
	while (length && ready(d, client, POLLOUT, CLIENT_PATIENCE)) {
		const ssize_t sent = send(client, text, length, MSG_NOSIGNAL);

		if (sent < 0)
			return;
		text += sent;
		length -= (size_t)sent;
	}
}

static void serve(const struct server *d, int client)
{
	char request[REQUEST_SIZE], json[ANSWER_SIZE];
	size_t length;

	if (read_request(d, client, request)) {
		request_answer(d->bridge, request, json, sizeof(json) - 1);
		length = strlen(json);
		json[length++] = '\n';
		send_answer(d, client, json, length);
	}
	close(client);
}

static void *serve_all(void *argument)
{
	const struct server *d = argument;

	for (;;) {
		struct pollfd wait[] = {{.fd = d->listener, .events = POLLIN},
					{.fd = d->stop, .events = POLLIN}};

		if (poll(wait, 2, -1) < 0 && errno != EINTR)
			return NULL;
		if (wait[1].revents)
			return NULL;
		/* The listener does not block: another thread may have been quicker. */
		const int client = accept4(d->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (client >= 0)
			serve(d, client);
		else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM)
			poll(&wait[1], 1, 100); /* no descriptors left: do not spin */
	}
}

static bool listen_at(struct server *d, const struct options *o, struct reason *why)
{
	if (mkdir(o->folder, 0755) && errno != EEXIST) {
		REASON(why, "cannot make %.300s: %s", o->folder, strerror(errno));
		return false;
	}
	d->listener = listener_open(o->socket_path, o->group, &d->inode, why);
	return d->listener >= 0;
}

bool server_open(struct bridge *b, struct reason *why)
{
	struct server *d = calloc(1, sizeof(*d));

	if (!d) {
		REASON(why, "no memory");
		return false;
	}
	b->server = d;
	*d = (struct server){.bridge = b, .listener = -1, .stop = eventfd(0, EFD_CLOEXEC)};
	if (d->stop < 0) {
		REASON(why, "no eventfd: %s", strerror(errno));
		return false;
	}
	if (!listen_at(d, &b->options, why))
		return false;
	while (d->running < THREADS && !thread_start(&d->thread[d->running], serve_all, d))
		d->running++;
	if (!d->running)
		REASON(why, "cannot start a thread");
	return d->running > 0;
}

/* Safe after a failed server_open() too. The threads are gone when it returns. */
void server_close(struct bridge *b)
{
	struct server *d = b->server;
	const uint64_t one = 1;
	struct stat info;

	if (!d)
		return;
	if (d->stop >= 0 && write(d->stop, &one, sizeof(one)) < 0)
		return; /* cannot happen; leaking beats unmapping code that runs */
	while (d->running)
		pthread_join(d->thread[--d->running], NULL);
	if (d->listener >= 0) {
		close(d->listener);
		if (d->inode && !stat(b->options.socket_path, &info) && info.st_ino == d->inode)
			unlink(b->options.socket_path);
	}
	if (d->stop >= 0)
		close(d->stop);
	free(d);
	b->server = NULL;
}
