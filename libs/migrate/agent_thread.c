#include "agent_thread.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "ask_agent.h"
#include "connection.h"
#include "thread.h"

#define STOP_PATIENCE 2 /* seconds that agent_thread_stop waits for an exchange that is under way */

struct agent_thread {
	char address[256], munge_socket[108];
	int event;
	pthread_t thread;
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	/* Below: guarded by `mutex`. */
	enum { IDLE, QUEUED, ASKING, DONE } state;
	bool stopping;
	char payload[PAYLOAD_SIZE];
	size_t length;
	int64_t patience;
	char line[ANSWER_SIZE];
	struct reason why;
};

/* Reads `payload` and writes `line` without the mutex: while the state is ASKING, no other thread touches them. */
static void exchange(struct agent_thread *t)
{
	const char *user = getenv("SAR_AGENT_USER");
	const struct agent_address agent = {t->address, t->munge_socket, user ? user : AGENT_USER};
	const int64_t deadline = clock_ms() + t->patience;

	if (ask_agent(&agent, t->payload, t->length, deadline, deadline, t->line, &t->why) == ASK_ANSWERED)
		t->why.text[0] = '\0';
}

static void *run(void *argument)
{
	struct agent_thread *t = argument;
	const uint64_t increment = 1;

	pthread_mutex_lock(&t->mutex);
	while (!t->stopping) {
		if (t->state != QUEUED) {
			pthread_cond_wait(&t->changed, &t->mutex);
			continue;
		}
		t->state = ASKING;
		pthread_mutex_unlock(&t->mutex);
		exchange(t);
		pthread_mutex_lock(&t->mutex);
		t->state = DONE;
		if (write(t->event, &increment, sizeof(increment)) < 0)
			break; /* cannot happen */
	}
	pthread_mutex_unlock(&t->mutex);
	return NULL;
}

static void discard(struct agent_thread *t)
{
	if (t->event >= 0)
		close(t->event);
	pthread_cond_destroy(&t->changed);
	pthread_mutex_destroy(&t->mutex);
	free(t);
}

struct agent_thread *agent_thread_start(const char *address, const char *munge_socket, struct reason *why)
{
	struct agent_thread *t;
	int error;

	if (strlen(address) >= sizeof(t->address) || (munge_socket && strlen(munge_socket) >= sizeof(t->munge_socket)))
		return REASON(why, "the address of the agent or of munge's socket is too long"), NULL;
	t = calloc(1, sizeof(*t));
	if (!t)
		return REASON(why, "no memory"), NULL;
	strcpy(t->address, address);
	strcpy(t->munge_socket, munge_socket ? munge_socket : "");
	pthread_mutex_init(&t->mutex, NULL);
	pthread_cond_init(&t->changed, NULL);
	t->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	error = t->event < 0 ? errno : thread_start(&t->thread, run, t);
	if (!error)
		return t;
	REASON(why, "cannot start a thread: %s", strerror(error));
	discard(t);
	return NULL;
}

int agent_thread_fd(const struct agent_thread *t)
{
	return t->event;
}

void agent_thread_ask(struct agent_thread *t, const char *payload, size_t length, int64_t patience)
{
	pthread_mutex_lock(&t->mutex);
	memcpy(t->payload, payload, length);
	t->length = length;
	t->patience = patience;
	t->state = QUEUED;
	pthread_cond_signal(&t->changed);
	pthread_mutex_unlock(&t->mutex);
}

bool agent_thread_result(struct agent_thread *t, struct answer *answer, struct reason *why)
{
	uint64_t count;
	bool done;

	if (read(t->event, &count, sizeof(count)) < 0 && errno != EAGAIN)
		return false;
	pthread_mutex_lock(&t->mutex);
	done = t->state == DONE;
	if (done) {
		*why = t->why;
		if (!*why->text && !answer_parse(answer, t->line))
			REASON(why, "the agent's answer does not follow PROTOCOL.md");
		t->state = IDLE;
	}
	pthread_mutex_unlock(&t->mutex);
	return done;
}

void agent_thread_stop(struct agent_thread *t)
{
	struct timespec until;

	if (!t)
		return;
	pthread_mutex_lock(&t->mutex);
	t->stopping = true;
	pthread_cond_signal(&t->changed);
	pthread_mutex_unlock(&t->mutex);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += STOP_PATIENCE;
	if (!pthread_timedjoin_np(t->thread, NULL, &until))
		discard(t);
	else
		pthread_detach(t->thread);
}
