/*
 * A `load`: reads the file, has OpenSM route again, and waits for the result. The agent acts on the answer (it saves its
 * state and changes metrics), so the answer reports what is in force, not what was requested.
 *
 * A load that is not complete at its deadline is still under way: OpenSM computes or sends tables. So no other load may
 * start before it is over, and `status` reports it.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "bridge.h"
#include "clock.h"

#define POKE_INTERVAL_SECONDS 5 /* seconds: a sweep that was under way may have ignored the request */

/* The caller holds `shared.lock`. */
static bool may_start(struct bridge *b, struct reason *why)
{
	if (b->shared.stopping)
		REASON(why, "OpenSM is shutting down");
	else if (!b->routing.engine_is_set_up)
		REASON(why, "routing_engine in opensm.conf does not name \"%s\"", SAR_ENGINE);
	else if (!state_is_master(b))
		REASON_OF(why, "not-master", "this OpenSM is not the master");
	else if (b->shared.loading || state_under_way(b))
		REASON_OF(why, "busy", "another load is under way (%s)", state_name(b));
	else
		return true;
	if (!b->shared.loading && b->shared.asked > b->shared.building && !b->shared.stopping && state_is_master(b))
		state_request_routing(b); /* its caller has given up waiting, so nobody else requests a routing for it */
	return false;
}

static bool goes_on(struct bridge *b, uint64_t number)
{
	return !b->shared.stopping && state_is_master(b) && state_under_way(b) && b->shared.built < number;
}

/* The caller holds `shared.lock`. True once a routing that began after load `number` is computed and sent. */
static bool wait_for(struct bridge *b, uint64_t number)
{
	const double deadline = clock_seconds() + b->options.deadline;
	double poke_at = 0;

	while (goes_on(b, number) && clock_seconds() < deadline) {
		/* Not while a slow engine works on the routing that was requested first, or a routing waits for it. */
		if (b->shared.building < number && !b->shared.calling && clock_seconds() >= poke_at) {
			state_request_routing(b);
			poke_at = clock_seconds() + POKE_INTERVAL_SECONDS;
		}
		state_wait(b, 1000);
	}
	return b->shared.built >= number;
}

/* The caller holds `shared.lock`. True if `generation` is in force on every switch; otherwise sets `why`. */
static bool check_result(struct bridge *b, uint64_t generation, bool built, struct reason *why)
{
	const struct reason *problem = *b->shared.load_problem.text ? &b->shared.load_problem : &b->shared.last_error;
	const char *code = problem->code ? problem->code : "other";

	if (b->shared.stopping)
		REASON(why, "OpenSM is shutting down");
	else if (!state_is_master(b))
		REASON_OF(why, "not-master", "this OpenSM is not the master; generation %ju was not "
			  "installed", (uintmax_t)generation);
	else if (!built)
		REASON_OF(why, "deadline", "generation %ju is not in force after %u s, and OpenSM is still "
			  "at it (%s); is sar the first engine in routing_engine?", (uintmax_t)generation,
			  b->options.deadline, state_name(b));
	else if (*b->shared.load_problem.text && b->shared.generation_in_force)
		REASON_OF(why, code, "generation %ju stays in force: %.400s",
			  (uintmax_t)b->shared.generation_in_force, problem->text);
	else if (b->shared.generation_in_force != generation)
		REASON_OF(why, code, "engine %s is in force: %.400s", b->shared.engine_in_force, problem->text);
	else if (b->shared.unconfirmed || b->shared.unconfirmed_ports)
		REASON_OF(why, "unconfirmed", "generation %ju is in force, but %.400s",
			  (uintmax_t)generation, b->shared.last_error.text);
	else
		return true;
	return false;
}

/* The caller holds `shared.lock`. Makes `routes` those that the next routing tries; returns the number of the load. */
static uint64_t queue_load(struct bridge *b, struct routes *routes, const char *proved_from)
{
	routes_drop(b->shared.load_routes);
	b->shared.load_routes = routes;
	snprintf(b->shared.proved_from, sizeof(b->shared.proved_from), "%s", proved_from);
	b->shared.load_problem = (struct reason){.text = ""};
	pthread_cond_broadcast(&b->shared.changed); /* a routing may wait for it */
	return ++b->shared.asked;
}

bool reload(struct bridge *b, uint64_t generation, const char *proved_from, struct reason *why)
{
	struct routes *routes = NULL;
	uint64_t number;
	bool good;

	pthread_mutex_lock(&b->shared.lock);
	good = may_start(b, why);
	if (good)
		b->shared.loading = true;
	pthread_mutex_unlock(&b->shared.lock);
	if (!good)
		return false;

	routes = plans_read_next(b, generation, why); /* without the mutex, since it may take a while */
	pthread_mutex_lock(&b->shared.lock);
	if (routes) {
		generation = routes->generation;
		number = queue_load(b, routes, proved_from);
		good = check_result(b, generation, wait_for(b, number), why);
	} else {
		good = false;
		b->shared.last_error = *why;
	}
	b->shared.loading = false;
	pthread_mutex_unlock(&b->shared.lock);
	if (!good)
		BRIDGE_LOG(b, OSM_LOG_ERROR, "load refused: %s\n", why->text);
	return good;
}
