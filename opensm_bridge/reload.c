/*
 * One `load`: read the file, have OpenSM route again, and wait until it is known what came of it.
 * The caller acts on the answer (state is saved, metrics change), so it tells what is in force, not
 * what was asked for.
 *
 * A load that is not done at its deadline is still under way: OpenSM computes or sends. So no other
 * one begins before it is over, and `status` says so.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "bridge.h"

#define POKE_EVERY 5 /* seconds: a sweep under way may have swallowed the request */

static void poke(struct bridge *b)
{
	b->osm->subn.force_reroute = TRUE;
	osm_opensm_sweep(b->osm);
}

/* With the mutex held. */
static bool may_start(struct bridge *b, struct reason *why)
{
	if (b->stopping)
		REASON(why, "OpenSM is shutting down");
	else if (!b->engine_is_set_up)
		REASON(why, "routing_engine in opensm.conf does not name \"%s\"", SAR_ENGINE);
	else if (!state_is_master(b))
		REASON_OF(why, "not-master", "this OpenSM is not the master");
	else if (b->loading || state_under_way(b))
		REASON_OF(why, "busy", "another load is under way (%s)", state_name(b));
	else
		return true;
	if (!b->loading && b->asked > b->building && !b->stopping && state_is_master(b))
		poke(b); /* nobody waits for that one any more */
	return false;
}

static bool goes_on(struct bridge *b, uint64_t mine)
{
	return !b->stopping && state_is_master(b) && state_under_way(b) && b->built < mine;
}

/* With the mutex held; true once a build that began after request `mine` is done and sent. */
static bool wait_for(struct bridge *b, uint64_t mine)
{
	struct timespec now, until;
	time_t deadline, poke_at;

	clock_gettime(CLOCK_MONOTONIC, &now);
	deadline = now.tv_sec + (time_t)b->options.deadline;
	poke_at = now.tv_sec;
	while (goes_on(b, mine) && now.tv_sec < deadline) {
		/* No second poke while a slow engine is at work on the first. */
		if (b->building < mine && now.tv_sec >= poke_at) {
			poke(b);
			poke_at = now.tv_sec + POKE_EVERY;
		}
		until = now;
		until.tv_sec++;
		pthread_cond_timedwait(&b->changed, &b->mutex, &until);
		clock_gettime(CLOCK_MONOTONIC, &now);
	}
	return b->built >= mine;
}

/* With the mutex held: why generation `wanted` is not in force, or not on every switch. */
static bool judge(struct bridge *b, uint64_t wanted, bool built, struct reason *why)
{
	const struct reason *problem = *b->load_problem.text ? &b->load_problem : &b->last_error;
	const char *code = problem->code ? problem->code : "other";

	if (b->stopping)
		REASON(why, "OpenSM is shutting down");
	else if (!state_is_master(b))
		REASON_OF(why, "not-master", "this OpenSM is not the master; generation %ju was not "
			  "installed", (uintmax_t)wanted);
	else if (!built)
		REASON_OF(why, "deadline", "generation %ju is not in force after %u s, and OpenSM is still "
			  "at it (%s); is sar the first engine in routing_engine?", (uintmax_t)wanted,
			  b->options.deadline, state_name(b));
	else if (*b->load_problem.text && b->generation_in_force)
		REASON_OF(why, code, "generation %ju stays in force: %.400s",
			  (uintmax_t)b->generation_in_force, problem->text);
	else if (b->generation_in_force != wanted)
		REASON_OF(why, code, "engine %s is in force: %.400s", b->engine_in_force, problem->text);
	else if (b->unconfirmed || b->unconfirmed_ports)
		REASON_OF(why, "unconfirmed", "generation %ju is in force, but %.400s",
			  (uintmax_t)wanted, b->last_error.text);
	else
		return true;
	return false;
}

/* With the mutex held: `routes` are what the next routing tries. */
static uint64_t ask(struct bridge *b, struct routes *routes, const char *proved_from)
{
	routes_drop(b->wanted);
	b->wanted = routes;
	snprintf(b->proved_from, sizeof(b->proved_from), "%s", proved_from);
	b->load_problem = (struct reason){.text = ""};
	return ++b->asked;
}

bool reload(struct bridge *b, uint64_t generation, const char *proved_from, struct reason *why)
{
	struct routes *routes = NULL;
	uint64_t wanted, mine;
	bool good;

	pthread_mutex_lock(&b->mutex);
	good = may_start(b, why);
	if (good)
		b->loading = true;
	pthread_mutex_unlock(&b->mutex);
	if (!good)
		return false;

	routes = plans_read_next(b, generation, why); /* not under the mutex: it may take a while */
	pthread_mutex_lock(&b->mutex);
	if (routes) {
		wanted = routes->generation;
		mine = ask(b, routes, proved_from);
		good = judge(b, wanted, wait_for(b, mine), why);
	} else {
		good = false;
		b->last_error = *why;
	}
	b->loading = false;
	pthread_mutex_unlock(&b->mutex);
	if (!good)
		BRIDGE_LOG(b, OSM_LOG_ERROR, "load refused: %s\n", why->text);
	return good;
}
