/*
 * One `load`: read the file, have OpenSM route again, and wait until it is known what came of it.
 * The caller acts on the answer (state is saved, metrics change), so it tells what is in force, not
 * what was asked for.
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

static bool may_start(struct bridge *b, struct reason *why)
{
	if (b->stopping)
		REASON(why, "OpenSM is shutting down");
	else if (b->loading)
		REASON(why, "another load is under way");
	else if (!b->engine_is_set_up)
		REASON(why, "routing_engine in opensm.conf does not name \"%s\"", SAR_ENGINE);
	else
		return true;
	return false;
}

static bool is_master(const struct bridge *b)
{
	return b->osm->subn.sm_state == IB_SMINFO_STATE_MASTER;
}

/* With the mutex held; true once a build that began after request `mine` is done and sent. */
static bool wait_for(struct bridge *b, uint64_t mine)
{
	struct timespec now, poke_at;
	time_t deadline;

	clock_gettime(CLOCK_MONOTONIC, &now);
	deadline = now.tv_sec + (time_t)b->options.deadline;
	while (b->built < mine && !b->stopping && is_master(b) && now.tv_sec < deadline) {
		poke(b);
		poke_at = now;
		poke_at.tv_sec = now.tv_sec + POKE_EVERY < deadline ? now.tv_sec + POKE_EVERY : deadline;
		while (b->built < mine && !b->stopping && is_master(b) &&
		       pthread_cond_timedwait(&b->changed, &b->mutex, &poke_at) != ETIMEDOUT)
			;
		/* No second poke while a slow engine is at work on the first. */
		while (b->built < mine && b->building >= mine && !b->stopping && is_master(b) &&
		       now.tv_sec < deadline) {
			clock_gettime(CLOCK_MONOTONIC, &now);
			poke_at = now;
			poke_at.tv_sec++;
			pthread_cond_timedwait(&b->changed, &b->mutex, &poke_at);
		}
		clock_gettime(CLOCK_MONOTONIC, &now);
	}
	return b->built >= mine;
}

/* With the mutex held: say what is in force if it is not generation `wanted` on every switch. */
static bool judge(const struct bridge *b, uint64_t wanted, bool built, struct reason *why)
{
	if (!built && !is_master(b))
		REASON(why, "this OpenSM is not the master; generation %ju is valid and will be "
		       "used when it takes over", (uintmax_t)wanted);
	else if (!built)
		REASON(why, "nothing was installed within %u s (%.300s)", b->options.deadline,
		       *b->last_error.text ? b->last_error.text :
		       "OpenSM did not finish; is sar the first engine in routing_engine?");
	else if (b->generation_in_force != wanted && b->generation_in_force)
		REASON(why, "generation %ju stays in force: %.400s",
		       (uintmax_t)b->generation_in_force, b->last_error.text);
	else if (b->generation_in_force != wanted)
		REASON(why, "engine %s is in force: %.400s", b->engine_in_force, b->last_error.text);
	else if (b->unconfirmed)
		REASON(why, "%.400s", b->last_error.text);
	else
		return true;
	return false;
}

bool reload(struct bridge *b, uint64_t generation, struct reason *why)
{
	uint64_t mine, wanted;
	bool good;

	pthread_mutex_lock(&b->mutex);
	good = may_start(b, why);
	if (good)
		b->loading = true;
	pthread_mutex_unlock(&b->mutex);
	if (!good)
		return false;

	good = plans_take_file(b, generation, why); /* not under the mutex: it may take a while */
	pthread_mutex_lock(&b->mutex);
	if (good) {
		wanted = b->newest->generation;
		mine = ++b->asked;
		good = judge(b, wanted, wait_for(b, mine), why);
	}
	b->loading = false;
	pthread_mutex_unlock(&b->mutex);
	if (!good)
		BRIDGE_LOG(b, OSM_LOG_ERROR, "load refused: %s\n", why->text);
	return good;
}
