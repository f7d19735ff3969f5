/*
 * All sockets are nonblocking, and every wait is a poll() until the deadline. The exception is getaddrinfo(), which
 * knows no deadline: callers that must not hang run this in a child (slurm_spank) or a thread (libsar_migrate).
 */
#include "connection.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static bool wait_for(int connection, short events, int64_t deadline, struct reason *why)
{
	struct pollfd wait = {.fd = connection, .events = events};
	int64_t left;
	int ready;

	do {
		left = deadline - clock_ms();
		ready = left > 0 ? poll(&wait, 1, (int)left) : 0;
	} while (ready < 0 && errno == EINTR);
	if (ready < 0)
		REFUSE("poll: %s", strerror(errno));
	if (!ready)
		REFUSE("timed out");
	return true;
}

static int try_connect(int family, const struct sockaddr *address, socklen_t length, int64_t deadline,
		       struct reason *why)
{
	const int connection = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	socklen_t size = sizeof(int);
	int error = 0;

	if (connection < 0)
		return REASON(why, "socket: %s", strerror(errno)), -1;
	/* EAGAIN: the backlog of a Unix socket is full; it may drain before the deadline. */
	while (connect(connection, address, length)) {
		error = errno;
		if (error == EAGAIN && clock_ms() + 5 < deadline) {
			poll(NULL, 0, 5);
			continue;
		}
		if (error == EINPROGRESS) {
			if (!wait_for(connection, POLLOUT, deadline, why))
				return close(connection), -1;
			if (getsockopt(connection, SOL_SOCKET, SO_ERROR, &error, &size))
				error = errno;
		}
		if (!error)
			break;
		REASON(why, "%s", strerror(error));
		return close(connection), -1;
	}
	return connection;
}

static int open_unix(const char *path, int64_t deadline, struct reason *why)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	if (strlen(path) >= sizeof(address.sun_path))
		return REASON(why, "the path is too long for a Unix socket"), -1;
	strcpy(address.sun_path, path);
	return try_connect(AF_UNIX, (const struct sockaddr *)&address, sizeof(address), deadline, why);
}

static int open_tcp(const char *address, int64_t deadline, struct reason *why)
{
	const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
	const char *colon = strrchr(address, ':'), *host = address;
	struct addrinfo *addresses = NULL;
	char name[256];
	int connection = -1, error;
	size_t length;

	if (!colon || (size_t)(colon - address) >= sizeof(name))
		return REASON(why, "not of the form HOST:PORT"), -1;
	length = (size_t)(colon - address);
	if (length > 2 && *host == '[' && host[length - 1] == ']') {
		host++;
		length -= 2;
	}
	memcpy(name, host, length);
	name[length] = '\0';
	error = getaddrinfo(name, colon + 1, &hints, &addresses);
	if (error)
		return REASON(why, "%s", gai_strerror(error)), -1;
	for (const struct addrinfo *at = addresses; at && connection < 0; at = at->ai_next)
		connection = try_connect(at->ai_family, at->ai_addr, at->ai_addrlen, deadline, why);
	freeaddrinfo(addresses);
	return connection;
}

int connection_open(const char *address, int64_t deadline, struct reason *why)
{
	return *address == '/' ? open_unix(address, deadline, why) : open_tcp(address, deadline, why);
}

int64_t connection_peer(int connection)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);
	struct sockaddr_storage address = {.ss_family = AF_UNSPEC};
	socklen_t length = sizeof(address);

	if (getsockname(connection, (struct sockaddr *)&address, &length) || address.ss_family != AF_UNIX ||
	    getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &size))
		return -1;
	return (int64_t)peer.uid;
}

bool connection_send(int connection, const char *bytes, size_t length, int64_t deadline, struct reason *why)
{
	while (length) {
		const ssize_t sent = send(connection, bytes, length, MSG_NOSIGNAL);

		if (sent >= 0) {
			bytes += sent;
			length -= (size_t)sent;
		} else if (errno == EAGAIN) {
			if (!wait_for(connection, POLLOUT, deadline, why))
				return false;
		} else if (errno != EINTR) {
			REFUSE("send: %s", strerror(errno));
		}
	}
	return true;
}

bool connection_read_answer(int connection, char *answer, size_t room, int64_t deadline, struct reason *why)
{
	size_t length = 0;

	while (length < room) {
		const ssize_t got = recv(connection, answer + length, room - length, 0);
		char *end;

		if (got > 0) {
			length += (size_t)got;
			end = memmem(answer, length, "\n\n", 2);
			if (!end)
				continue;
			*end = '\0';
			if (strlen(answer) == (size_t)(end - answer))
				return true;
			REFUSE("the answer has a zero byte");
		} else if (!got) {
			REFUSE("the agent closed the connection without an answer");
		} else if (errno == EAGAIN) {
			if (!wait_for(connection, POLLIN, deadline, why))
				return false;
		} else if (errno != EINTR) {
			REFUSE("recv: %s", strerror(errno));
		}
	}
	REFUSE("the answer is longer than %zu bytes", room - 1);
}
