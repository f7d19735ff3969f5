/* The public functions: open, close, queue pairs, notices of other processes. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "connection.h"
#include "library.h"
#include "thread.h"

#define CLOSE_PATIENCE 2000 /* ms to unsubscribe */

static void discard(struct sar_migrate *m)
{
	agent_thread_stop(m->agent_thread);
	sa_close(m->sa);
	for (const int *fd = (const int[]){m->epoll, m->timer, m->wake, m->trace, -2}; *fd != -2; fd++)
		if (*fd >= 0)
			close(*fd);
	free(m->queue_pairs.pair);
	pthread_mutex_destroy(&m->mutex);
	free(m);
}

static bool watch(const struct sar_migrate *m, int fd)
{
	struct epoll_event readable = {.events = EPOLLIN};

	return !epoll_ctl(m->epoll, EPOLL_CTL_ADD, fd, &readable);
}

static bool open_all(struct sar_migrate *m, const struct sar_migrate_options *o, struct reason *why)
{
	m->epoll = epoll_create1(EPOLL_CLOEXEC);
	m->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	m->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (m->epoll < 0 || m->timer < 0 || m->wake < 0)
		return REASON(why, "%s", strerror(errno)), false;
	if (o->trace) {
		m->trace = open(o->trace, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
		if (m->trace < 0)
			return REASON(why, "%.300s: %s", o->trace, strerror(errno)), false;
	}
	m->agent_thread = agent_thread_start(o->agent, o->munge_socket, why);
	if (!m->agent_thread)
		return false;
	if (o->notices && !(m->sa = sa_open(o->ca, o->port, o->simulated, why)))
		return false;
	if (!watch(m, m->timer) || !watch(m, m->wake) || !watch(m, agent_thread_fd(m->agent_thread)) ||
	    (m->sa && sa_fd(m->sa) >= 0 && !watch(m, sa_fd(m->sa))))
		return REASON(why, "epoll: %s", strerror(errno)), false;
	return true;
}

struct sar_migrate *sar_migrate_open(const struct sar_migrate_options *options, const struct sar_qp_ops *ops,
				     char *error, size_t room)
{
	struct sar_migrate *m = calloc(1, sizeof(*m));
	struct message identity;
	struct reason why = {.text = "no memory"};

	if (m) {
		m->epoll = m->timer = m->wake = m->trace = -1;
		pthread_mutex_init(&m->mutex, NULL);
		m->job = options->job;
		m->queue_pairs.ops = ops;
		rules_start(&m->rules);
		message_identify(&identity);
		memcpy(m->subscriber, identity.id, sizeof(m->subscriber));
		if (options->agent && open_all(m, options, &why)) {
			trace(m, "start", ",\"offset\":1");
			sar_migrate_step(m);
			return m;
		}
		if (!options->agent)
			REASON(&why, "no address of the agent is given");
		discard(m);
	}
	snprintf(error, room, "%s", why.text);
	return NULL;
}

int sar_migrate_fd(const struct sar_migrate *m)
{
	return m->epoll;
}

static void *run(void *argument)
{
	struct sar_migrate *m = argument;
	struct pollfd wait = {.fd = m->epoll, .events = POLLIN};
	bool stopping;

	do {
		(void)poll(&wait, 1, -1);
		sar_migrate_step(m);
		pthread_mutex_lock(&m->mutex);
		stopping = m->stopping;
		pthread_mutex_unlock(&m->mutex);
	} while (!stopping);
	return NULL;
}

int sar_migrate_thread(struct sar_migrate *m)
{
	const int error = m->threaded ? EBUSY : thread_start(&m->thread, run, m);

	m->threaded = m->threaded || !error;
	return -error;
}

/* Makes the descriptor readable, so that the next step comes soon. */
static void wake(struct sar_migrate *m)
{
	const uint64_t increment = 1;

	if (write(m->wake, &increment, sizeof(increment)) < 0)
		return; /* the counter is full: it is readable already */
}

unsigned sar_migrate_offset(struct sar_migrate *m)
{
	unsigned offset;

	pthread_mutex_lock(&m->mutex);
	offset = m->rules.target;
	pthread_mutex_unlock(&m->mutex);
	return offset;
}

int sar_migrate_add(struct sar_migrate *m, void *qp, unsigned offset)
{
	int error = 0;

	pthread_mutex_lock(&m->mutex);
	if (offset != m->rules.target)
		error = -ESTALE;
	else if (!queue_pairs_add(&m->queue_pairs, qp, offset))
		error = -ENOMEM;
	pthread_mutex_unlock(&m->mutex);
	wake(m);
	return error;
}

static void tell(struct sar_migrate *m, void (*change)(struct queue_pairs *q, const void *handle), const void *qp)
{
	pthread_mutex_lock(&m->mutex);
	change(&m->queue_pairs, qp);
	pthread_mutex_unlock(&m->mutex);
	wake(m); /* other queue pairs may have been waiting for this one */
}

void sar_migrate_remove(struct sar_migrate *m, void *qp)
{
	tell(m, queue_pairs_remove, qp);
}

void sar_migrate_drained(struct sar_migrate *m, void *qp)
{
	tell(m, queue_pairs_drained, qp);
}

void sar_migrate_pulled(struct sar_migrate *m, void *qp)
{
	tell(m, queue_pairs_pulled, qp);
}

int sar_migrate_heard(struct sar_migrate *m, uint64_t *update, uint64_t *generation)
{
	int kind;

	pthread_mutex_lock(&m->mutex);
	kind = m->rules.stage == STAGE_AWAY ? NOTICE_UNPATH : NOTICE_REPATH;
	kind = m->rules.update ? kind : 0; /* before the first update the agent answers "idle" */
	*update = m->rules.update;
	*generation = m->rules.generation;
	pthread_mutex_unlock(&m->mutex);
	return kind;
}

void sar_migrate_notice(struct sar_migrate *m, int kind, uint64_t update, uint64_t generation)
{
	const struct notice notice = {kind == NOTICE_REPATH ? NOTICE_REPATH : NOTICE_UNPATH, update, generation};

	if (kind != NOTICE_UNPATH && kind != NOTICE_REPATH)
		return;
	pthread_mutex_lock(&m->mutex);
	receive_notice(m, &notice);
	pthread_mutex_unlock(&m->mutex);
	wake(m);
}

void sar_migrate_problem(struct sar_migrate *m, char *text, size_t room)
{
	const struct reason *why;

	pthread_mutex_lock(&m->mutex);
	why = *m->qp_problem.text ? &m->qp_problem : *m->agent_problem.text ? &m->agent_problem : &m->sa_problem;
	snprintf(text, room, "%s", why->text);
	pthread_mutex_unlock(&m->mutex);
}

int sar_migrate_close(struct sar_migrate *m)
{
	const int64_t deadline = clock_ms() + CLOSE_PATIENCE;
	struct pollfd wait = {.fd = m->epoll, .events = POLLIN};
	struct reason unused;

	pthread_mutex_lock(&m->mutex);
	if (m->queue_pairs.count) {
		pthread_mutex_unlock(&m->mutex);
		return -EBUSY;
	}
	m->stopping = true;
	pthread_mutex_unlock(&m->mutex);
	wake(m);
	if (m->threaded)
		pthread_join(m->thread, NULL);
	if (m->sa)
		(void)sa_inform(m->sa, false, &unused);
	while (!m->unsubscribed && clock_ms() < deadline) {
		sar_migrate_step(m);
		(void)poll(&wait, 1, 50);
	}
	trace(m, "end", ",\"offset\":%u", m->rules.offset);
	discard(m);
	return 0;
}
