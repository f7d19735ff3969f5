/*
 * Writes what is in force as a routes file: the entry that OpenSM sent to each switch last, from any engine, and where the
 * switch has not confirmed it, the entry that it may have instead. So the agent reads back the installed tables in the
 * same format in which it writes its plans.
 *
 * The file has the service levels of the plugin's own routes; for another engine's routes it has one lane. Hop-by-hop
 * lanes come from the switches' answers; if the 16 service levels of an entry differ, a lane that is not as planned is
 * written.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "bridge.h"
#include "routes_image.h"

#define PAUSE_NS 2000000 /* ns between two attempts to lock OpenSM's structures */

static unsigned widest(const struct live *live)
{
	unsigned most = 0;

	for (uint32_t s = 0; s < live->switches; s++)
		most = live->sw[s].ports > most ? live->sw[s].ports : most;
	return most + 1;
}

static void fill_nodes(struct routes *r, const struct live *live, const struct routes *own)
{
	for (uint32_t s = 0; s < live->switches; s++) {
		const uint32_t row = own ? routes_switch(own, live->sw[s].guid) : 0;

		ROUTES_FILL(uint8_t, r->senders)[s] = own && row < own->switches && own->senders[row];
		ROUTES_FILL(uint64_t, r->switch_guid)[s] = live->sw[s].guid;
		ROUTES_FILL(uint8_t, r->switch_ports)[s] = live->sw[s].ports;
	}
	for (uint32_t t = 0; t < live->terminals; t++) {
		ROUTES_FILL(uint64_t, r->terminal_guid)[t] = live->end[t].guid;
		ROUTES_FILL(uint32_t, r->terminal_leaf)[t] = live->end[t].leaf;
	}
}

static uint8_t confirmed_lane(const struct routes *own, const struct live *live, osm_switch_t **sw,
			      uint32_t s, unsigned in, unsigned out)
{
	osm_physp_t *port = osm_node_get_physp_ptr(sw[s]->p_node, out);
	const uint32_t row = routes_switch(own, live->sw[s].guid);
	const uint8_t planned = row < own->switches ? routes_hop_lane(own, row, in, out) : 0;
	const ib_slvl_table_t *table;

	if (!out || !port || ib_port_info_get_port_state(&port->port_info) == IB_LINK_DOWN)
		return planned; /* OpenSM sends no tables to such a port */
	table = osm_physp_get_slvl_tbl(port, (uint8_t)in);
	if (lanes_are_unanswered(table))
		return planned ? 0 : 1;
	for (uint8_t sl = 0; sl < 16; sl++)
		if (ib_slvl_table_get(table, sl) != planned)
			return ib_slvl_table_get(table, sl) < 15 ? ib_slvl_table_get(table, sl) : 14;
	return planned;
}

/* Fills `lanes` unless it is NULL; returns the number of lanes. */
static unsigned fill_lanes(uint8_t *lanes, const struct routes *own, const struct live *live, osm_switch_t **sw, unsigned wide)
{
	unsigned most = own->lanes - 1;

	for (uint32_t s = 0; s < live->switches; s++)
		for (unsigned in = 0; in <= live->sw[s].ports; in++)
			for (unsigned out = 0; out <= live->sw[s].ports; out++) {
				const uint8_t lane = confirmed_lane(own, live, sw, s, in, out);

				most = lane > most ? lane : most;
				if (lanes)
					lanes[((size_t)s * wide + in) * wide + out] = lane;
			}
	return most + 1;
}

static void fill_far_ends(struct routes *r, const struct live *live)
{
	uint32_t *ends = ROUTES_FILL(uint32_t, r->far_ends);

	memset(ends, 0xff, (size_t)live->switches * r->wide * sizeof(*ends));
	for (uint32_t s = 0; s < live->switches; s++)
		for (unsigned p = 1; p <= live->sw[s].ports; p++) {
			const uint32_t at = live->sw[s].first_port + p;

			if (live->peer[at] != NO_PEER)
				ends[(size_t)s * r->wide + p] = live->peer[at] << 8 | live->peer_port[at];
		}
}

/* The certificate of the plugin's own routes; lanes that only the switches have got no numbers. */
static void fill_numbers(struct routes *r, const struct live *live, const struct routes *own)
{
	const unsigned wide = own->wide < r->wide ? own->wide : r->wide;
	const unsigned lanes = own->lanes < r->lanes ? own->lanes : r->lanes;

	for (uint32_t s = 0; s < live->switches; s++) {
		const uint32_t row = routes_switch(own, live->sw[s].guid);
		const size_t to = (size_t)s * r->wide, from = (size_t)row * own->wide;

		if (row == own->switches)
			continue;
		memcpy(ROUTES_FILL(uint32_t, r->loads) + to, own->loads + from, wide * sizeof(*r->loads));
		for (unsigned lane = 0; lane < lanes; lane++)
			memcpy(ROUTES_FILL(uint32_t, r->numbers) + (size_t)lane * r->switches * r->wide + to,
			       own->numbers + (size_t)lane * own->switches * own->wide + from,
			       wide * sizeof(*r->numbers));
	}
}

/* The LID of a column of the dump at an offset. */
static uint16_t lid_of(const struct live *live, uint32_t column, unsigned offset)
{
	/* Its columns begin with the terminals, the numbers of destinations with the switches. */
	const uint32_t d = column < live->terminals ? live->switches + column : column - live->terminals;
	const struct live_destination to = live_destination(live, d);

	return (uint16_t)(to.low + offset <= to.high ? to.low + offset : to.low);
}

/* Port 0 in a column other than the switch's own means no route. */
static uint8_t port_of(uint8_t ports, uint8_t entry)
{
	return entry && entry < ports ? entry : ROUTES_NO_ROUTE;
}

/* The row of a switch at an offset. */
static void fill_row(struct bridge *b, struct routes *r, const struct live *live, osm_switch_t *sw, unsigned offset, uint32_t s)
{
	const struct known *all = tables_known(b, live);
	const struct known_switch *known = all ? &all->sw[s] : NULL;
	uint8_t *port = ROUTES_FILL(uint8_t, routes_row(r, r->forwarding, offset, s));
	uint8_t *had = r->had ? ROUTES_FILL(uint8_t, routes_row(r, r->had, offset, s)) : NULL;
	uint8_t *level = r->service_levels ? ROUTES_FILL(uint8_t, routes_row(r, r->service_levels, offset, s)) : NULL;

	for (uint32_t d = 0; d < r->columns; d++) {
		const uint16_t lid = lid_of(live, d, offset);
		const uint8_t instead = known && lid < all->lids ? known->had[lid] : ENTRY_UNKNOWN;

		port[d] = port_of(sw->num_ports, known && lid < all->lids ? known->sent[lid] : ENTRY_NO_ROUTE);
		if (had)
			had[d] = instead == ENTRY_UNKNOWN ? ROUTES_UNKNOWN : port_of(sw->num_ports, instead);
		if (level)
			level[d] = lanes_path_sl(b, 0, cl_hton16(live->sw[s].lid_low), cl_hton16(lid));
	}
	port[live->terminals + s] = 0;
	if (had)
		had[live->terminals + s] = 0;
}

/* Whether all switches had confirmed the last routing that was sent. */
static bool all_had_confirmed(struct bridge *b)
{
	bool good;

	pthread_mutex_lock(&b->shared.lock);
	good = b->shared.routed && !b->shared.unconfirmed;
	pthread_mutex_unlock(&b->shared.lock);
	return good;
}

/* Sets `own` to the plugin's routes if they are in force, and the sizes of the file; false if no routes are in force. */
static bool sizes_of(struct bridge *b, const struct live *live, bool lent, struct routes *sizes, const struct routes **own,
		     struct reason *why)
{
	/* OpenSM forgets the engine in use at the begin of a routing. */
	const struct osm_routing_engine *used = b->osm->routing_engine_used;
	const char *engine = lent ? b->tables.known_engine : used ? used->name : NULL;
	const bool ours = engine && !strcmp(engine, SAR_ENGINE) && b->routing.in_force;
	uint32_t switches, blocks;

	if (!engine || !*engine)
		return REASON(why, "no routes are in force yet"), false;
	if (!live->switches || !live->terminals)
		return REASON(why, "the fabric has %u switches and %u terminals", live->switches, live->terminals), false;
	*own = ours ? b->routing.in_force->tables.routes : NULL;
	known_count(&b->tables.known, &switches, &blocks);
	*sizes = (struct routes){.generation = ours ? (*own)->generation : 1,
				 .made_at = (uint64_t)time(NULL),
				 .switches = live->switches,
				 .terminals = live->terminals,
				 .offsets = live->lids_per_port,
				 .lanes = ours ? (*own)->lanes : 1,
				 .wide = widest(live)};
	/* Once all had confirmed, only a switch that has come up since has not: packets do not pass it. */
	if (blocks && !(lent && all_had_confirmed(b)))
		sizes->flags |= ROUTES_HAD;
	if (ours && (*own)->hop_lanes)
		sizes->flags |= ROUTES_HOPS;
	if (ours && (*own)->numbers)
		sizes->flags |= ROUTES_NUMBERS;
	snprintf(sizes->engine, sizeof(sizes->engine), "%.31s", ours ? (*own)->engine : engine);
	return true;
}

/* The caller holds OpenSM's lock and `tables`; the image is written to disk after both are released. */
static struct routes *image_of(struct bridge *b, struct live *live, osm_switch_t **sw, bool lent, struct reason *why)
{
	const struct routes *own;
	struct routes sizes, *r;

	if (!sizes_of(b, live, lent, &sizes, &own, why))
		return NULL;
	if (own && own->hop_lanes)
		sizes.lanes = fill_lanes(NULL, own, live, sw, sizes.wide);
	r = routes_blank(&sizes);
	if (!r)
		return REASON(why, "no memory for the dump"), NULL;
	qsort(live->end, live->terminals, sizeof(*live->end), guid_order);
	fill_nodes(r, live, own);
	fill_far_ends(r, live);
	if (own && own->numbers && r->numbers)
		fill_numbers(r, live, own);
	for (unsigned o = 0; o < r->offsets; o++)
		for (uint32_t s = 0; s < live->switches; s++)
			fill_row(b, r, live, sw[s], o, s);
	if (own && own->hop_lanes)
		fill_lanes(ROUTES_FILL(uint8_t, r->hop_lanes), own, live, sw, r->wide);
	if (own && own->sl_to_vl && r->sl_to_vl) {
		memcpy(ROUTES_FILL(uint8_t, r->sl_to_vl), own->sl_to_vl, 16);
		for (unsigned o = 0; o < r->offsets; o++)
			ROUTES_FILL(uint8_t, r->fallback_sl)[o] = own->fallback_sl[0];
	}
	return r;
}

static uint32_t count_unconfirmed_ports(struct bridge *b, bool lent)
{
	uint32_t ports;

	if (!lent)
		return lanes_count_unconfirmed(b).ports;
	pthread_mutex_lock(&b->shared.lock);
	ports = b->shared.unconfirmed_ports; /* as of the last routing that was sent */
	pthread_mutex_unlock(&b->shared.lock);
	return ports;
}

bool dump_in_force(struct bridge *b, char more[MORE_SIZE], struct reason *why)
{
	struct routes *r = NULL;
	osm_switch_t **sw = NULL;
	struct live live;
	const struct timespec pause = {.tv_nsec = PAUSE_NS};
	enum held held;
	bool lent, good;

	while ((held = osm_try_lock(b)) == BUSY)
		nanosleep(&pause, NULL);
	lent = held == LENT;
	if (live_from_osm(&live, &sw, b->osm, why)) {
		pthread_mutex_lock(&b->tables.lock);
		if (!lent) /* the routing that lends has looked, and OpenSM's new tables are empty */
			tables_look(b, LOOK_DUMP);
		r = image_of(b, &live, sw, lent, why);
		snprintf(more, MORE_SIZE, "\"digest\":\"%016" PRIx64 "\",\"unconfirmed_sl2vl_ports\":%u", tables_digest(b, &live),
			 count_unconfirmed_ports(b, lent));
		pthread_mutex_unlock(&b->tables.lock);
	}
	osm_unlock(b, held);
	live_free(&live);
	free(sw);
	if (!r)
		return false;
	good = routes_write(r, b->options.dump_path, why);
	routes_drop(r);
	return good;
}
