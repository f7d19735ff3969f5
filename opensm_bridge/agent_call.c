/*
 * A call to the agent from inside OpenSM's routing: where no repair of ours reaches all hosts, the routing waits for the
 * agent's routes, for a bounded time, instead of handing the whole fabric to the next engine.
 *
 * All this time the routing holds OpenSM's lock, as any slow engine does. The thread that waits touches nothing of
 * OpenSM's, so it lends the lock: requests that only read OpenSM's structures (`dump`, `fabric`) go on without taking it,
 * and the wait does not end before they are done. Nobody is waited for who does not listen: a client that has an `await`
 * request open.
 *
 * The caller of a load does not wake OpenSM during a call; the routing that is under way takes the load.
 *
 * **Weak spot:** that all of OpenSM's threads take this lock before they change what `dump` and `fabric` read, that its sweep
 * thread is the one that waits here, and that it has no MAD outstanding, is read from 3.3.23. A thread that changed a switch
 * without the lock would be seen half-way by a request to which the lock is lent, as by any engine that computes.
 */
#include "bridge.h"
#include "clock.h"

#define GAP_SECONDS 1 /* seconds that a client may take between two requests */
#define SLICE_MS 200 /* ms between two looks at whether OpenSM is to end */

/* The caller holds `shared.lock`. */
static bool is_over(const struct bridge *b)
{
	const double now = clock_seconds();
	/* A load that was requested in time is read and checked first. */
	const double end = b->shared.call_ends + (b->shared.loading ? (double)b->options.repair_wait : 0);

	return b->shared.load_routes || b->shared.call_declined || b->shared.stopping || osm_exit_flag || now >= end;
}

bool agent_call_begin(struct bridge *b, struct reason *why)
{
	bool good = false;

	pthread_mutex_lock(&b->shared.lock);
	if (!b->options.repair_wait)
		REASON(why, "the agent is not asked (repair_wait=0)");
	else if (!b->shared.listening && (!b->shared.heard_at || clock_seconds() - b->shared.heard_at > GAP_SECONDS))
		REASON(why, "no agent listens");
	else if (b->shared.loading || b->shared.asked > b->shared.built)
		REASON(why, "the agent is not asked, since its last load is under way");
	else
		good = true;
	if (good) {
		b->shared.calling = true;
		b->shared.call_declined = false;
		b->shared.calls++;
		b->shared.call_begun = clock_seconds();
		b->shared.call_ends = b->shared.call_begun + b->options.repair_wait;
	}
	pthread_mutex_unlock(&b->shared.lock);
	return good;
}

struct routes *agent_call_wait(struct bridge *b, char *proved_from, size_t room)
{
	struct routes *offered;

	pthread_mutex_lock(&b->shared.lock);
	while (!is_over(b))
		state_wait(b, SLICE_MS);
	offered = b->shared.load_routes;
	b->shared.load_routes = NULL;
	if (offered) {
		b->shared.building = b->shared.asked;
		snprintf(proved_from, room, "%s", b->shared.proved_from);
	}
	pthread_mutex_unlock(&b->shared.lock);
	return offered;
}

void agent_call_refuse(struct bridge *b, const struct reason *load)
{
	pthread_mutex_lock(&b->shared.lock);
	b->shared.load_problem = *load;
	b->shared.built = b->shared.building;
	pthread_cond_broadcast(&b->shared.changed);
	pthread_mutex_unlock(&b->shared.lock);
}

double agent_call_end(struct bridge *b, bool *declined)
{
	double took;

	pthread_mutex_lock(&b->shared.lock);
	b->shared.calling = false;
	while (b->shared.borrowers)
		pthread_cond_wait(&b->shared.changed, &b->shared.lock);
	*declined = b->shared.call_declined;
	took = clock_seconds() - b->shared.call_begun;
	pthread_mutex_unlock(&b->shared.lock);
	return took;
}

bool agent_call_listen(struct bridge *b)
{
	bool good;

	pthread_mutex_lock(&b->shared.lock);
	good = b->shared.listening < MOST_LISTENING;
	b->shared.listening += good;
	pthread_mutex_unlock(&b->shared.lock);
	return good;
}

void agent_call_leave(struct bridge *b)
{
	pthread_mutex_lock(&b->shared.lock);
	b->shared.listening--;
	b->shared.heard_at = clock_seconds();
	pthread_mutex_unlock(&b->shared.lock);
}

unsigned agent_call_number(struct bridge *b, unsigned answered)
{
	unsigned number;

	pthread_mutex_lock(&b->shared.lock);
	number = b->shared.calling && b->shared.calls != answered ? b->shared.calls : 0;
	pthread_mutex_unlock(&b->shared.lock);
	return number;
}

bool agent_call_decline(struct bridge *b, unsigned number)
{
	bool good;

	pthread_mutex_lock(&b->shared.lock);
	good = b->shared.calling && b->shared.calls == number;
	b->shared.call_declined |= good;
	pthread_cond_broadcast(&b->shared.changed);
	pthread_mutex_unlock(&b->shared.lock);
	return good;
}

enum held osm_try_lock(struct bridge *b)
{
	bool lent;

	pthread_mutex_lock(&b->shared.lock);
	lent = b->shared.calling;
	b->shared.borrowers += lent;
	pthread_mutex_unlock(&b->shared.lock);
	if (lent)
		return LENT;
	return pthread_rwlock_tryrdlock(&b->osm->lock.lock) ? BUSY : HELD;
}

void osm_unlock(struct bridge *b, enum held held)
{
	if (held == HELD) {
		cl_plock_release(&b->osm->lock);
		return;
	}
	pthread_mutex_lock(&b->shared.lock);
	b->shared.borrowers--;
	pthread_cond_broadcast(&b->shared.changed);
	pthread_mutex_unlock(&b->shared.lock);
}
