#include "talker.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "credential.h"
#include "stream.h"

#define LAST_PATIENCE 2 /* seconds for an exchange under way at the end */

struct talker {
	char address[256], munge_socket[108];
	int event;
	pthread_t thread;
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	/* Below: guarded by `mutex`. */
	enum { IDLE, ASKED, TALKING, ANSWERED } state;
	bool stopping;
	char payload[PAYLOAD_SIZE];
	size_t length;
	int64_t patience;
	char line[ANSWER_SIZE];
	struct reason why;
};

/* Alone with `payload` and `line` while TALKING. */
static void exchange(struct talker *t)
{
	const int64_t deadline = clock_ms() + t->patience;
	const int stream = stream_open(t->address, deadline, &t->why);
	const int64_t reader = stream >= 0 ? stream_peer(stream) : READER_ANY;
	const char *user = getenv("SAR_AGENT_USER");
	char *credential;
	size_t size;

	if (stream < 0)
		return;
	credential = credential_make(t->munge_socket, t->payload, t->length,
				     reader >= 0 ? reader : credential_reader(user ? user : "sar-agent"), &t->why);
	if (credential) {
		size = strlen(credential);
		credential[size] = '\n'; /* in place of its '\0': a line is counted, not ended */
		if (stream_send(stream, credential, size + 1, deadline, &t->why) &&
		    stream_line(stream, t->line, sizeof(t->line), deadline, &t->why))
			t->why.text[0] = '\0';
	}
	close(stream);
	free(credential);
}

static void *run(void *argument)
{
	struct talker *t = argument;
	const uint64_t one = 1;

	pthread_mutex_lock(&t->mutex);
	while (!t->stopping) {
		if (t->state != ASKED) {
			pthread_cond_wait(&t->changed, &t->mutex);
			continue;
		}
		t->state = TALKING;
		pthread_mutex_unlock(&t->mutex);
		exchange(t);
		pthread_mutex_lock(&t->mutex);
		t->state = ANSWERED;
		if (write(t->event, &one, sizeof(one)) < 0)
			break; /* cannot happen */
	}
	pthread_mutex_unlock(&t->mutex);
	return NULL;
}

static void discard(struct talker *t)
{
	if (t->event >= 0)
		close(t->event);
	pthread_cond_destroy(&t->changed);
	pthread_mutex_destroy(&t->mutex);
	free(t);
}

struct talker *talker_start(const char *address, const char *munge_socket, struct reason *why)
{
	struct talker *t;
	sigset_t all, before;
	int error;

	if (strlen(address) >= sizeof(t->address) || (munge_socket && strlen(munge_socket) >= sizeof(t->munge_socket)))
		return REASON(why, "the agent's or munge's address is too long"), NULL;
	t = calloc(1, sizeof(*t));
	if (!t)
		return REASON(why, "no memory"), NULL;
	strcpy(t->address, address);
	strcpy(t->munge_socket, munge_socket ? munge_socket : "");
	pthread_mutex_init(&t->mutex, NULL);
	pthread_cond_init(&t->changed, NULL);
	t->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	/* Signals are for the application's own threads. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	error = t->event < 0 ? errno : pthread_create(&t->thread, NULL, run, t);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!error)
		return t;
	REASON(why, "cannot start a thread: %s", strerror(error));
	discard(t);
	return NULL;
}

int talker_fd(const struct talker *t)
{
	return t->event;
}

bool talker_busy(struct talker *t)
{
	bool busy;

	pthread_mutex_lock(&t->mutex);
	busy = t->state != IDLE;
	pthread_mutex_unlock(&t->mutex);
	return busy;
}

void talker_ask(struct talker *t, const char *payload, size_t length, int64_t patience)
{
	pthread_mutex_lock(&t->mutex);
	memcpy(t->payload, payload, length);
	t->length = length;
	t->patience = patience;
	t->state = ASKED;
	pthread_cond_signal(&t->changed);
	pthread_mutex_unlock(&t->mutex);
}

bool talker_take(struct talker *t, struct answer *answer, struct reason *why)
{
	uint64_t count;
	bool over;

	if (read(t->event, &count, sizeof(count)) < 0 && errno != EAGAIN)
		return false;
	pthread_mutex_lock(&t->mutex);
	over = t->state == ANSWERED;
	if (over) {
		*why = t->why;
		if (!*why->text && !answer_read(answer, t->line))
			REASON(why, "the agent did not answer as PROTOCOL.md has it");
		t->state = IDLE;
	}
	pthread_mutex_unlock(&t->mutex);
	return over;
}

void talker_stop(struct talker *t)
{
	struct timespec until;

	if (!t)
		return;
	pthread_mutex_lock(&t->mutex);
	t->stopping = true;
	pthread_cond_signal(&t->changed);
	pthread_mutex_unlock(&t->mutex);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += LAST_PATIENCE;
	if (!pthread_timedjoin_np(t->thread, NULL, &until))
		discard(t);
	else
		pthread_detach(t->thread);
}
