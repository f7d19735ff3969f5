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
#include <sys/un.h>
#include <unistd.h>

#include "bridge.h"

#define THREADS 8
#define REQUEST_SIZE 64
#define ANSWER_SIZE 8192
#define CLIENT_PATIENCE 5000 /* ms that a client may take to ask, or to read its answer */

struct door {
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
static bool ready(const struct door *d, int file, short events, int patience)
{
	struct pollfd wait[] = {{.fd = file, .events = events}, {.fd = d->stop, .events = POLLIN}};
	int count;

	do
		count = poll(wait, 2, patience);
	while (count < 0 && errno == EINTR);
	return count > 0 && !wait[1].revents && wait[0].revents & (events | POLLHUP);
}

static bool read_request(const struct door *d, int client, char *request)
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

static void send_answer(const struct door *d, int client, const char *text, size_t length)
{
	while (length && ready(d, client, POLLOUT, CLIENT_PATIENCE)) {
		const ssize_t sent = send(client, text, length, MSG_NOSIGNAL);

		if (sent < 0)
			return;
		text += sent;
		length -= (size_t)sent;
	}
}

static void serve(const struct door *d, int client)
{
	char request[REQUEST_SIZE], json[ANSWER_SIZE];
	size_t length;

	if (read_request(d, client, request)) {
		answer(d->bridge, request, json, sizeof(json) - 1);
		length = strlen(json);
		json[length++] = '\n';
		send_answer(d, client, json, length);
	}
	close(client);
}

static void *serve_all(void *argument)
{
	const struct door *d = argument;

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

/* A socket file that nobody listens on is left over from a crash. */
static bool remove_stale(const struct sockaddr_un *address, struct reason *why)
{
	struct stat info;
	int probe, error;

	if (lstat(address->sun_path, &info))
		return true;
	if (!S_ISSOCK(info.st_mode)) {
		REASON(why, "%s exists and is not a socket", address->sun_path);
		return false;
	}
	probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	error = probe < 0 || !connect(probe, (const void *)address, sizeof(*address)) ? 0 : errno;
	if (probe >= 0)
		close(probe);
	if (error == ECONNREFUSED)
		return !unlink(address->sun_path);
	REASON(why, "another OpenSM already listens on %s; give each its own dir", address->sun_path);
	return false;
}

static bool listen_at(struct door *d, const struct options *o, struct reason *why)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct stat info;
	int listener;

	memcpy(address.sun_path, o->socket_path, sizeof(address.sun_path));
	if (mkdir(o->folder, 0755) && errno != EEXIST) {
		REASON(why, "cannot make %.300s: %s", o->folder, strerror(errno));
		return false;
	}
	if (!remove_stale(&address, why))
		return false;
	listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	/* The rights are set before listen(): until then nobody can connect. */
	if (listener < 0 || bind(listener, (const void *)&address, sizeof(address)) ||
	    chmod(o->socket_path, 0660) ||
	    (o->group >= 0 && chown(o->socket_path, (uid_t)-1, (gid_t)o->group)) ||
	    stat(o->socket_path, &info) || listen(listener, 16)) {
		REASON(why, "cannot listen on %s: %s", o->socket_path, strerror(errno));
		if (listener >= 0)
			close(listener);
		return false;
	}
	d->listener = listener;
	d->inode = info.st_ino;
	return true;
}

bool door_open(struct bridge *b, struct reason *why)
{
	struct door *d = calloc(1, sizeof(*d));

	if (!d) {
		REASON(why, "no memory");
		return false;
	}
	b->door = d;
	*d = (struct door){.bridge = b, .listener = -1, .stop = eventfd(0, EFD_CLOEXEC)};
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

/* Safe after a failed door_open() too. The threads are gone when it returns. */
void door_close(struct bridge *b)
{
	struct door *d = b->door;
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
	b->door = NULL;
}
