/*
 * What is in force, as a routes file: the tables that the switches have confirmed, whoever built
 * them. So the agent reads the truth back in the format it writes its wishes in.
 *
 * A block that a switch has not confirmed yet reads as "no route". Service levels are told for our
 * own routes; for another engine's the file says one lane.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "bridge.h"
#include "routes_write.h"

static uint8_t confirmed_port(const osm_switch_t *sw, unsigned lid)
{
	const uint8_t port = lid && lid <= sw->max_lid_ho && sw->lft ? sw->lft[lid] : ROUTES_NO_ROUTE;

	return port && port < sw->num_ports ? port : ROUTES_NO_ROUTE;
}

static unsigned lid_of(uint16_t low, uint16_t high, unsigned offset)
{
	return low + offset <= high ? low + offset : low;
}

static int by_guid(const void *a, const void *b)
{
	const struct live_terminal *x = a, *y = b;

	return x->guid < y->guid ? -1 : x->guid > y->guid;
}

static void fill_nodes(struct routes *r, const struct live *live)
{
	for (uint32_t s = 0; s < live->switches; s++) {
		ROUTES_FILL(uint64_t, r->switch_guid)[s] = live->sw[s].guid;
		ROUTES_FILL(uint8_t, r->switch_ports)[s] = live->sw[s].ports;
	}
	for (uint32_t t = 0; t < live->terminals; t++) {
		ROUTES_FILL(uint64_t, r->terminal_guid)[t] = live->end[t].guid;
		ROUTES_FILL(uint32_t, r->terminal_leaf)[t] = live->end[t].leaf;
	}
}

static void fill_row(struct bridge *b, struct routes *r, const struct live *live,
		     osm_switch_t **sw, unsigned offset, uint32_t s)
{
	const ib_net16_t from = cl_hton16(live->sw[s].lid_low);
	uint8_t *port = ROUTES_FILL(uint8_t, routes_row(r, r->forwarding, offset, s));
	uint8_t *level = r->service_levels ?
		ROUTES_FILL(uint8_t, routes_row(r, r->service_levels, offset, s)) : NULL;

	for (uint32_t d = 0; d < r->columns; d++) {
		const uint32_t other = d - live->terminals;
		const unsigned lid = d < live->terminals ?
			lid_of(live->end[d].lid_low, live->end[d].lid_high, offset) :
			lid_of(live->sw[other].lid_low, live->sw[other].lid_high, offset);

		port[d] = confirmed_port(sw[s], lid);
		if (level)
			level[d] = lanes_path_sl(b, 0, from, cl_hton16((uint16_t)lid));
	}
	port[live->terminals + s] = 0;
}

/* With OpenSM's lock held; the image is written to disk after it is released. */
static struct routes *image_of(struct bridge *b, struct live *live, osm_switch_t **sw,
			       struct reason *why)
{
	const struct osm_routing_engine *used = b->osm->routing_engine_used;
	const bool ours = used && used->name && !strcmp(used->name, SAR_ENGINE) && b->in_force;
	const struct routes *mine = ours ? b->in_force->routes : NULL;
	struct routes sizes = {.generation = mine ? mine->generation : 1,
			       .made_at = (uint64_t)time(NULL),
			       .switches = live->switches,
			       .terminals = live->terminals,
			       .offsets = live->lids_per_port,
			       .lanes = mine ? mine->lanes : 1};
	struct routes *r;

	if (!used) {
		REASON(why, "no routes are in force yet");
		return NULL;
	}
	if (!live->switches || !live->terminals) {
		REASON(why, "the fabric has %u switches and %u terminals", live->switches, live->terminals);
		return NULL;
	}
	snprintf(sizes.engine, sizeof(sizes.engine), "%.31s", mine ? mine->engine : used->name);
	r = routes_blank(&sizes);
	if (!r) {
		REASON(why, "no memory for the dump");
		return NULL;
	}
	qsort(live->end, live->terminals, sizeof(*live->end), by_guid);
	fill_nodes(r, live);
	for (unsigned o = 0; o < r->offsets; o++)
		for (uint32_t s = 0; s < live->switches; s++)
			fill_row(b, r, live, sw, o, s);
	if (mine && mine->lanes > 1) {
		memcpy(ROUTES_FILL(uint8_t, r->sl_to_vl), mine->sl_to_vl, 16);
		for (unsigned o = 0; o < r->offsets; o++)
			ROUTES_FILL(uint8_t, r->fallback_sl)[o] = mine->fallback_sl[0];
	}
	return r;
}

bool dump_in_force(struct bridge *b, struct reason *why)
{
	struct routes *r = NULL;
	osm_switch_t **sw = NULL;
	struct live live;
	bool good;

	cl_plock_acquire(&b->osm->lock); /* shared; waits while OpenSM routes */
	if (live_from_osm(&live, &sw, b->osm, why))
		r = image_of(b, &live, sw, why);
	cl_plock_release(&b->osm->lock);
	live_free(&live);
	free(sw);
	if (!r)
		return false;
	routes_seal(r);
	good = routes_write(r, b->options.dump_path, why);
	routes_drop(r);
	return good;
}
