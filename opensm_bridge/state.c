/*
 * The progress of OpenSM, determined without its lock, because `status` must be answered while an engine computes for
 * minutes.
 *
 * A routing begins with a call of this plugin's engine, even if another engine computes the tables in the end. OpenSM holds
 * its lock until the tables are computed and handed over for sending; until then `routing_engine_used` is NULL. The routing
 * ends with UCAST_ROUTING_DONE. If a switch did not answer, OpenSM may start another sweep and routing instead; that still
 * counts as the same work.
 *
 * **Weak spot:** that `routing_engine_used` is NULL exactly while an engine computes, and stays NULL if all have failed, is read
 * from 3.3.23. If not, `status` would name a wrong state, and a load would be answered at its deadline instead of at once.
 */
#include "bridge.h"

bool state_is_master(const struct bridge *b)
{
	return b->osm->subn.sm_state == IB_SMINFO_STATE_MASTER;
}

static bool computed(const struct bridge *b)
{
	return __atomic_load_n(&b->osm->routing_engine_used, __ATOMIC_ACQUIRE) != NULL;
}

/* The lock is free, and still no engine is in use: all engines have failed, which OpenSM does not report. */
static bool failed(struct bridge *b)
{
	if (pthread_rwlock_tryrdlock(&b->osm->lock.lock))
		return false;
	pthread_rwlock_unlock(&b->osm->lock.lock);
	return !computed(b);
}

static void notice_failure(struct bridge *b)
{
	if (b->shared.phase != ROUTING || computed(b) || !failed(b))
		return;
	b->shared.phase = IDLE;
	b->shared.built = b->shared.building;
	snprintf(b->shared.engine_in_force, sizeof(b->shared.engine_in_force), "none");
	b->shared.generation_in_force = 0;
	REASON(&b->shared.last_error, "no routing engine could route this fabric (see OpenSM's log)");
	if (!*b->shared.load_problem.text)
		b->shared.load_problem = b->shared.last_error;
	pthread_cond_broadcast(&b->shared.changed);
}

/* A load was requested and is not complete, whether or not its caller still waits. */
bool state_under_way(struct bridge *b)
{
	notice_failure(b);
	return b->shared.asked > b->shared.built;
}

const char *state_name(struct bridge *b)
{
	const osm_subn_t *subn = &b->osm->subn;

	notice_failure(b);
	if (b->shared.calling)
		return "waiting";
	if (b->shared.phase == ROUTING)
		return computed(b) ? "sending" : "building";
	if (!b->shared.routed)
		return "starting";
	if (state_is_master(b) && (b->shared.phase == SWEEPING || b->shared.asked > b->shared.building ||
				   subn->force_reroute || subn->force_heavy_sweep))
		return "asked";
	return "built";
}

/* Requested loads will not happen: another SM is responsible for the tables now. */
void state_lost_master(struct bridge *b)
{
	routes_drop(b->shared.load_routes);
	b->shared.load_routes = NULL;
	b->shared.phase = IDLE;
	b->shared.building = b->shared.built = b->shared.asked;
	b->shared.take_file = true;
	pthread_cond_broadcast(&b->shared.changed);
}

void state_wait(struct bridge *b, long milliseconds)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += milliseconds % 1000 * 1000000;
	until.tv_sec += milliseconds / 1000 + until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	pthread_cond_timedwait(&b->shared.changed, &b->shared.lock, &until);
}

void state_request_routing(struct bridge *b)
{
	b->osm->subn.force_reroute = TRUE;
	osm_opensm_sweep(b->osm);
}
