/*
 * The routing engine "sar", which OpenSM calls first for hop counts and then for the tables, both in its sweep thread and
 * with its lock held. Hop counts serve multicast only, and OpenSM computes that after it has sent the tables; so they
 * are set then (events.c), and a repair reaches the switches earlier. Routes that cannot be used are refused in the first call,
 * before anything of OpenSM's has changed, so that the next engine starts from a clean state.
 *
 * These functions must never return a positive number: OpenSM would then build min-hop tables under this engine's name.
 */
#include <string.h>

#include "bridge.h"

static int build_lid_matrices(void *context)
{
	struct bridge *b = context;

	install_free(b->routing.next);
	install_forget_osm(b->routing.in_force);
	b->routing.next = plans_choose(b);
	return b->routing.next ? 0 : -1;
}

static int build_tables(void *context)
{
	struct bridge *b = context;
	struct install *chosen = b->routing.next;
	struct routes *old;

	b->routing.unmarked = NULL;
	if (!chosen)
		return -1;
	install_tables(chosen);
	pthread_mutex_lock(&b->tables.lock);
	tables_note_ends(b, chosen);
	pthread_mutex_unlock(&b->tables.lock);
	b->routing.next = NULL;
	install_free(b->routing.in_force);
	b->routing.in_force = chosen;
	pthread_mutex_lock(&b->shared.lock);
	old = b->shared.last_good;
	b->shared.last_good = routes_hold(chosen->tables.routes);
	if (chosen->tables.routes->generation > b->shared.highest)
		b->shared.highest = chosen->tables.routes->generation;
	pthread_mutex_unlock(&b->shared.lock);
	routes_drop(old);
	return 0;
}

static int set_up(struct osm_routing_engine *engine, osm_opensm_t *osm)
{
	struct bridge *b = engine->context;

	(void)osm;
	engine->build_lid_matrices = build_lid_matrices;
	engine->ucast_build_fwd_tables = build_tables;
	engine->update_sl2vl = lanes_sl2vl;
	engine->update_vlarb = lanes_vlarb;
	engine->path_sl = lanes_path_sl;
	b->routing.engine_is_set_up = true;
	return 0;
}

bool engine_register(struct bridge *b, struct reason *why)
{
	const external_routing_engine_module_t module = {.name = SAR_ENGINE, .setup = set_up};

	if (osm_register_external_routing_engine(b->osm, &module, b) == CL_SUCCESS)
		return true;
	REASON(why, "OpenSM did not accept the routing engine \"%s\"", SAR_ENGINE);
	return false;
}
