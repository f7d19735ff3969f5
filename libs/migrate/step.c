/* One step: does what is due now, and sets the timer for what is due next. */
#include <errno.h>
#include <inttypes.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "library.h"
#include "connection.h"

#define INFORM_INTERVAL 10000 /* ms: an SM that was restarted has lost the subscription */
#define INFORM_PATIENCE 4000  /* ms for the SA's answers: until then the kernel repeats what sa_inform() has sent */
#define INFORM_RETRY 1000
#define RETRY_MS 10 /* ms after a failed operation on a queue pair, and between polls of umad2sim */

void receive_notice(struct sar_migrate *m, const struct notice *notice)
{
	const enum stage stage = notice->kind == NOTICE_UNPATH ? STAGE_AWAY : STAGE_BACK;

	if (!rules_receive(&m->rules, notice->update, stage, notice->generation))
		return;
	trace(m, "notice", ",\"phase\":\"%s\",\"update\":%" PRIu64 ",\"generation\":%" PRIu64,
	      stage == STAGE_AWAY ? "unpath" : "repath", notice->update, notice->generation);
}

static void inform(struct sar_migrate *m, int64_t now)
{
	const bool sent = sa_inform(m->sa, true, &m->sa_problem);

	if (sent)
		m->sa_problem.text[0] = '\0';
	m->informed = false;
	m->inform_at = now + (sent ? INFORM_PATIENCE : INFORM_RETRY);
}

static void informed(struct sar_migrate *m, int64_t now)
{
	if (m->informed || !sa_informed(m->sa))
		return;
	m->informed = true;
	m->inform_at = now + INFORM_INTERVAL;
	trace(m, "informed", ",\"update\":%" PRIu64, m->rules.update);
}

static void move(struct sar_migrate *m, int64_t now)
{
	struct rules *r = &m->rules;
	const bool fenced = r->fenced;
	const unsigned target = rules_required_offset(r, now);

	if (r->fenced && !fenced && r->lease)
		trace(m, "fence", ",\"update\":%" PRIu64, r->update);
	if (rules_set_target(r, target)) {
		trace(m, "move", ",\"offset\":%u,\"update\":%" PRIu64, r->target, r->update);
		m->sent_back = 0;
	}
	if (r->stage == STAGE_BACK && m->sent_back != r->update) {
		m->sent_back = r->update;
		queue_pairs_send_back(&m->queue_pairs);
	}
	m->qp_problem.text[0] = '\0';
	if (queue_pairs_push(&m->queue_pairs, r->target, &m->qp_problem) && !r->settled) {
		rules_arrived(r);
		trace(m, "moved", ",\"offset\":%u,\"update\":%" PRIu64, r->offset, r->update);
	}
}

static void earlier(int64_t *when, int64_t other)
{
	if (other < *when)
		*when = other;
}

static void set_timer(struct sar_migrate *m, int64_t now)
{
	struct itimerspec at = {.it_value.tv_nsec = 0};
	int64_t when = now + 60000;

	if (m->request == REQUEST_NONE && !m->unsubscribed)
		earlier(&when, m->ask_at);
	if (!m->rules.fenced)
		earlier(&when, m->rules.fence_at);
	if (m->sa)
		earlier(&when, m->inform_at);
	if (m->queue_pairs.pending || (m->sa && sa_fd(m->sa) < 0))
		earlier(&when, now + RETRY_MS);
	when = when > now ? when : now + 1;
	at.it_value.tv_sec = when / 1000;
	at.it_value.tv_nsec = when % 1000 * 1000000;
	timerfd_settime(m->timer, TFD_TIMER_ABSTIME, &at, NULL);
}

void step(struct sar_migrate *m)
{
	struct notice notice;
	const int64_t now = clock_ms();

	subscription_end(m, now);
	if (m->sa) {
		while (sa_notice(m->sa, &notice))
			receive_notice(m, &notice);
		informed(m, now);
		if (now >= m->inform_at && !m->stopping)
			inform(m, now);
	}
	move(m, now);
	subscription_begin(m, now);
	set_timer(m, now);
}

void sar_migrate_step(struct sar_migrate *m)
{
	uint64_t count;

	if ((read(m->timer, &count, sizeof(count)) < 0 || read(m->wake, &count, sizeof(count)) < 0) && errno != EAGAIN)
		return;
	pthread_mutex_lock(&m->mutex);
	step(m);
	pthread_mutex_unlock(&m->mutex);
}
