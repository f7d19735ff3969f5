/*
 * The kernel's time limits for MADs, for a program on a simulated fabric: a request without an answer is sent again, and
 * returned to the program as timed out when no tries are left. umad2sim has no limits: without this library a program waits
 * forever for a lost answer. Stock OpenSM did so in 2 of 12 handovers on a busy machine.
 *
 * Loaded before umad2sim (LD_PRELOAD), also into programs that do not use libibumad. A limit is SLOWER times what the
 * program asks for, since a simulator on a busy machine is slower than a fabric.
 */
#include <dlfcn.h>
#include <errno.h>
#include <infiniband/umad.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MOST_REQUESTS 512 /* further ones have no limit */
#define MAD_SIZE 256
#define SLOWER 10
#define SLICE 200 /* ms between looks at the limits */

typedef int send_function(int port, int agent, void *umad, int length, int timeout, int retries);
typedef int receive_function(int port, void *umad, int *length, int timeout);

struct message {
	ib_user_mad_t header;
	uint8_t mad[MAD_SIZE];
};

/* A request that waits for its answer; its message has the same index. */
struct request {
	bool waits;
	int port, agent, timeout, retries;
	uint32_t transaction;
	int64_t deadline;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct request requests[MOST_REQUESTS];
static struct message messages[MOST_REQUESTS];

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* The half of the transaction that the program chose; the other half says which agent of umad has sent it. */
static uint32_t transaction_of(const struct message *message)
{
	uint32_t low;

	memcpy(&low, message->mad + 12, sizeof(low));
	return low;
}

static bool is_answer(const struct message *message)
{
	const uint8_t method = message->mad[3];

	return method & 0x80 || method == 0x07; /* TrapRepress */
}

static send_function *next_send(void)
{
	send_function *function;

	*(void **)&function = dlsym(RTLD_NEXT, "umad_send");
	return function ? function : (abort(), NULL);
}

static receive_function *next_receive(void)
{
	receive_function *function;

	*(void **)&function = dlsym(RTLD_NEXT, "umad_recv");
	return function ? function : (abort(), NULL);
}

static void remember(int port, int agent, const void *umad, int length, int timeout, int retries)
{
	const size_t size = length < 0 ? 0 : length > MAD_SIZE ? MAD_SIZE : (size_t)length;
	int i = 0;

	pthread_mutex_lock(&mutex);
	while (i < MOST_REQUESTS && requests[i].waits)
		i++;
	if (i < MOST_REQUESTS) {
		memset(&messages[i], 0, sizeof(messages[i]));
		memcpy(&messages[i], umad, sizeof(ib_user_mad_t) + size);
		requests[i] = (struct request){.waits = true, .port = port, .agent = agent, .timeout = timeout,
					       .retries = retries, .transaction = transaction_of(&messages[i]),
					       .deadline = now_ms() + timeout};
	}
	pthread_mutex_unlock(&mutex);
}

static void forget(int port, uint32_t transaction)
{
	pthread_mutex_lock(&mutex);
	for (int i = 0; i < MOST_REQUESTS; i++)
		if (requests[i].port == port && requests[i].transaction == transaction)
			requests[i].waits = false;
	pthread_mutex_unlock(&mutex);
}

int umad_send(int port, int agent, void *umad, int length, int timeout, int retries)
{
	if (timeout > 0)
		remember(port, agent, umad, length, timeout * SLOWER, retries);
	return next_send()(port, agent, umad, length, timeout, retries);
}

/* Takes a request of `port` that is past its limit; returns false if no request is late. A request without tries left is forgotten. */
static bool take_late(int port, struct request *request, struct message *message)
{
	const int64_t now = now_ms();
	bool taken = false;

	pthread_mutex_lock(&mutex);
	for (int i = 0; i < MOST_REQUESTS && !taken; i++) {
		struct request *r = &requests[i];

		if (!r->waits || r->port != port || r->deadline > now)
			continue;
		taken = true;
		r->deadline = now + r->timeout;
		r->waits = r->retries-- > 0;
		*request = *r;
		*message = messages[i];
	}
	pthread_mutex_unlock(&mutex);
	return taken;
}

/* Sends late requests again; or puts one that has timed out into `message`, and returns its agent. Else -1. */
static int time_out(int port, struct message *message)
{
	struct request request;
	struct message copy;

	while (take_late(port, &request, &copy)) {
		if (request.waits) {
			(void)next_send()(port, request.agent, &copy, MAD_SIZE, 0, 0);
			continue;
		}
		*message = copy;
		message->header.agent_id = (uint32_t)request.agent;
		message->header.status = ETIMEDOUT;
		return request.agent;
	}
	return -1;
}

int umad_recv(int port, void *umad, int *length, int timeout)
{
	const int64_t until = now_ms() + timeout;
	const int room = *length;

	for (;;) {
		const int64_t left = timeout < 0 ? SLICE : until - now_ms();
		const int received = next_receive()(port, umad, length, left > SLICE ? SLICE : left > 0 ? (int)left : 0);
		int agent;

		if (received >= 0) {
			/* ibsim returns a dropped request at once, with a status: the program knows, so it is not sent again. */
			if (room >= MAD_SIZE && (is_answer(umad) || ((const ib_user_mad_t *)umad)->status))
				forget(port, transaction_of(umad));
			return received;
		}
		*length = room;
		if (room >= MAD_SIZE && (agent = time_out(port, umad)) >= 0) {
			*length = MAD_SIZE;
			return agent;
		}
		if (timeout >= 0 && now_ms() >= until)
			return received;
		if (received != -ETIMEDOUT)
			nanosleep(&(const struct timespec){.tv_nsec = 1000000}, NULL); /* no busy loop on an error */
	}
}
