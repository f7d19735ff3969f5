/* One rank of a job in an emulated fabric: it enters the network namespace of its host, connects to its peers over TCP, and
 * sends and receives what the phases say, one step after the other, blocking in poll(). Small on purpose: 128 of them share
 * two processors, and none may spin.
 *
 *     ranks NAMESPACE      NAMESPACE is the file of a network namespace, `-` for this process's own
 *
 * Standard input (written by phases.py):
 *     rank NUMBER ADDRESS PORT      this rank, and where it listens
 *     peer NUMBER ADDRESS PORT      every rank that it sends to or receives from; a peer with a lower number is connected to
 *     limit SECONDS                 the process ends after so many
 *     passes COUNT                  how often the steps are gone through
 *     step                          begins a step: all its messages at once, and the next step when all have ended
 *     out NUMBER BYTES, in NUMBER BYTES
 *     end
 *     start SECONDS                 written by the runner when all ranks are ready: when to begin, on CLOCK_REALTIME
 * Standard output: `ready`, then `done SECONDS LATE`: from the agreed time to the end of this rank, and how late it began.
 * Exit code 2: bad input; 1: the network failed. One sentence on standard error says which. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { MOST_RANKS = 4096, MOST_MESSAGES = 1 << 20, PIECE = 1 << 16 };

typedef struct {
	int number, fd;
	struct sockaddr_in address;
} Peer;

typedef struct {
	int peer; /* index into peers; -1: a step begins here */
	short events;
	size_t bytes;
} Message;

static Peer *peers;
static Message *messages;
static size_t peer_count, message_count;
static unsigned long passes = 1;
static int me = -1;
static struct sockaddr_in mine;
static char piece[PIECE], scratch[PIECE];

static _Noreturn void __attribute__((format(printf, 2, 3))) die(int code, const char *what, ...)
{
	va_list more;
	va_start(more, what);
	fprintf(stderr, "rank %d: ", me);
	vfprintf(stderr, what, more);
	fputc('\n', stderr);
	va_end(more);
	exit(code);
}

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static struct sockaddr_in address_of(const char *text, long port)
{
	struct sockaddr_in a = {.sin_family = AF_INET};
	if (port < 1 || port > 65535 || inet_pton(AF_INET, text, &a.sin_addr) != 1)
		die(2, "%s:%ld is no address", text, port);
	a.sin_port = htons((unsigned short)port);
	return a;
}

static int peer_index(int number)
{
	for (size_t i = 0; i < peer_count; i++)
		if (peers[i].number == number)
			return (int)i;
	die(2, "rank %d is no peer", number);
}

static void add(int peer, short events, size_t bytes)
{
	if (message_count == MOST_MESSAGES)
		die(2, "more than %d messages", MOST_MESSAGES);
	messages[message_count++] = (Message){peer, events, bytes};
}

static void read_plan(void)
{
	char line[128], address[64];
	int number, used;
	long port;
	unsigned long value;
	unsigned limit;

	while (fgets(line, sizeof line, stdin)) {
		used = 0;
		line[strcspn(line, "\n")] = 0;
		if (sscanf(line, "rank %d %63s %ld%n", &number, address, &port, &used) == 3 && !line[used]) {
			me = number;
			mine = address_of(address, port);
		} else if (sscanf(line, "peer %d %63s %ld%n", &number, address, &port, &used) == 3 && !line[used]) {
			if (peer_count == MOST_RANKS || number == me || number < 0)
				die(2, "`%s` is one peer too many", line);
			peers[peer_count++] = (Peer){number, -1, address_of(address, port)};
		} else if (sscanf(line, "limit %u%n", &limit, &used) == 1 && !line[used])
			alarm(limit);
		else if (sscanf(line, "passes %lu%n", &passes, &used) == 1 && !line[used])
			continue;
		else if (!strcmp(line, "step"))
			add(-1, 0, 0);
		else if (sscanf(line, "out %d %lu%n", &number, &value, &used) == 2 && !line[used] && message_count)
			add(peer_index(number), POLLOUT, value);
		else if (sscanf(line, "in %d %lu%n", &number, &value, &used) == 2 && !line[used] && message_count)
			add(peer_index(number), POLLIN, value);
		else if (!strcmp(line, "end") && me >= 0)
			return;
		else
			die(2, "`%s` is not understood", line);
	}
	die(2, "the phases have no end");
}

static void set_up(int fd)
{
	int one = 1;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	if (fcntl(fd, F_SETFL, O_NONBLOCK))
		die(1, "fcntl: %s", strerror(errno));
}

/* Until the peer listens: it may not have started yet. The alarm ends a wait for one that never does. */
static int connected(const Peer *to)
{
	for (;;) {
		struct sockaddr_in from = mine;
		int fd = socket(AF_INET, SOCK_STREAM, 0);
		from.sin_port = 0;
		if (fd < 0 || bind(fd, (void *)&from, sizeof from))
			die(1, "bind: %s", strerror(errno));
		if (!connect(fd, (const void *)&to->address, sizeof to->address))
			return fd;
		if (errno != ECONNREFUSED && errno != ETIMEDOUT && errno != EINTR)
			die(1, "connecting to rank %d: %s", to->number, strerror(errno));
		close(fd);
		usleep(20000);
	}
}

static void connect_all(void)
{
	int one = 1, listener = socket(AF_INET, SOCK_STREAM, 0);
	size_t waited = 0;

	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	if (listener < 0 || bind(listener, (void *)&mine, sizeof mine) || listen(listener, MOST_RANKS))
		die(1, "listening: %s", strerror(errno));
	for (size_t i = 0; i < peer_count; i++) {
		int id = me;
		if (peers[i].number > me) {
			waited++;
			continue;
		}
		peers[i].fd = connected(&peers[i]);
		if (send(peers[i].fd, &id, sizeof id, MSG_NOSIGNAL) != sizeof id)
			die(1, "greeting rank %d: %s", peers[i].number, strerror(errno));
		set_up(peers[i].fd);
	}
	while (waited) {
		int id, at, fd = accept(listener, NULL, NULL);
		if (fd < 0) {
			if (errno == EINTR || errno == ECONNABORTED)
				continue;
			die(1, "accept: %s", strerror(errno));
		}
		if (recv(fd, &id, sizeof id, MSG_WAITALL) != sizeof id)
			die(1, "a peer ended before it said who it is");
		at = peer_index(id);
		if (peers[at].fd >= 0 || id < me)
			die(1, "rank %d connected twice", id);
		peers[at].fd = fd;
		set_up(fd);
		waited--;
	}
	close(listener);
}

/* Sends or receives a piece; returns the bytes that are left. */
static size_t move_piece(const Message *m, size_t left)
{
	size_t want = left < PIECE ? left : PIECE;
	ssize_t got = m->events == POLLOUT ? send(peers[m->peer].fd, piece, want, MSG_NOSIGNAL)
					   : recv(peers[m->peer].fd, scratch, want, 0);
	if (got > 0)
		return left - (size_t)got;
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return left;
	die(1, "rank %d has gone: %s", peers[m->peer].number, got ? strerror(errno) : "it closed the connection");
}

/* A step is the messages up to the next one that begins a step. */
static size_t run_step(size_t first, struct pollfd *waiting, size_t *left, int *at)
{
	size_t end = first;
	while (end < message_count && messages[end].peer >= 0) {
		left[end] = messages[end].bytes;
		end++;
	}
	for (;;) {
		nfds_t count = 0;
		for (size_t i = first; i < end; i++) {
			int peer = messages[i].peer;
			if (!left[i])
				continue;
			if (at[peer] < 0) {
				at[peer] = (int)count;
				waiting[count++] = (struct pollfd){peers[peer].fd, 0, 0};
			}
			waiting[at[peer]].events |= messages[i].events;
		}
		if (!count)
			return end;
		if (poll(waiting, count, -1) < 0 && errno != EINTR)
			die(1, "poll: %s", strerror(errno));
		for (size_t i = first; i < end; i++) {
			short found = left[i] ? waiting[at[messages[i].peer]].revents : 0;
			if (found & (messages[i].events | POLLERR | POLLHUP))
				left[i] = move_piece(&messages[i], left[i]);
		}
		for (size_t i = first; i < end; i++)
			at[messages[i].peer] = -1;
	}
}

static void run_all(void)
{
	struct pollfd *waiting = calloc(peer_count + 1, sizeof *waiting);
	size_t *left = calloc(message_count + 1, sizeof *left);
	int *at = calloc(peer_count + 1, sizeof *at);
	if (!waiting || !left || !at)
		die(1, "no memory");
	for (size_t i = 0; i < peer_count; i++)
		at[i] = -1;
	for (unsigned long pass = 0; pass < passes; pass++)
		for (size_t i = 0; i < message_count; i++)
			i = run_step(i + 1, waiting, left, at) - 1;
	free(waiting);
	free(left);
	free(at);
}

int main(int count, char **words)
{
	double start, late;
	char line[64];

	if (count != 2)
		die(2, "one argument is needed: the file of a network namespace, or -");
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (strcmp(words[1], "-")) {
		int fd = open(words[1], O_RDONLY | O_CLOEXEC);
		if (fd < 0 || setns(fd, CLONE_NEWNET))
			die(1, "%s: %s", words[1], strerror(errno));
		close(fd);
	}
	peers = calloc(MOST_RANKS, sizeof *peers);
	messages = calloc(MOST_MESSAGES, sizeof *messages);
	if (!peers || !messages)
		die(1, "no memory");
	read_plan();
	connect_all();
	puts("ready");
	fflush(stdout);
	if (!fgets(line, sizeof line, stdin) || sscanf(line, "start %lf", &start) != 1)
		die(2, "no time to start at");
	while ((late = now() - start) < 0)
		usleep((useconds_t)(-late > 1 ? 500000 : -late * 5e5 + 20));
	run_all();
	printf("done %.6f %.6f\n", now() - start, late);
	for (size_t i = 0; i < peer_count; i++)
		close(peers[i].fd);
	free(peers);
	free(messages);
	return 0;
}
