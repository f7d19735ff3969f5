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
#include "dump_rows.h"
#include "routes_write.h"

#define PAUSE 2000000 /* ns between two attempts to lock OpenSM's structures */

static int by_guid(const void *a, const void *b)
{
	const struct live_terminal *x = a, *y = b;

	return x->guid < y->guid ? -1 : x->guid > y->guid;
}

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

/* Fills `lanes`, which has room for all hops; returns the number of lanes. */
static unsigned confirmed_lanes(uint8_t *lanes, const struct routes *own, const struct live *live,
				osm_switch_t **sw, unsigned wide)
{
	unsigned most = own->lanes - 1;

	for (uint32_t s = 0; s < live->switches; s++)
		for (unsigned in = 0; in <= live->sw[s].ports; in++)
			for (unsigned out = 0; out <= live->sw[s].ports; out++) {
				const uint8_t lane = confirmed_lane(own, live, sw, s, in, out);

				lanes[((size_t)s * wide + in) * wide + out] = lane;
				most = lane > most ? lane : most;
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

/* Sets `own` to the plugin's routes if they are in force, and the sizes of the file; false if no routes are in force. */
static bool sizes_of(struct bridge *b, const struct live *live, bool lent, bool assumed, struct routes *sizes,
		     const struct routes **own, struct reason *why)
{
	/* OpenSM forgets the engine in use at the begin of a routing. */
	const struct osm_routing_engine *used = b->osm->routing_engine_used;
	const char *engine = lent ? b->known_engine : used ? used->name : NULL;
	const bool ours = engine && !strcmp(engine, SAR_ENGINE) && b->in_force;
	uint32_t switches, blocks;

	if (!engine || !*engine) {
		REASON(why, "no routes are in force yet");
		return false;
	}
	if (!live->switches || !live->terminals) {
		REASON(why, "the fabric has %u switches and %u terminals", live->switches, live->terminals);
		return false;
	}
	*own = ours ? b->in_force->routes : NULL;
	tables_count(b, &switches, &blocks);
	*sizes = (struct routes){.generation = ours ? (*own)->generation : 1,
				 .made_at = (uint64_t)time(NULL),
				 .switches = live->switches,
				 .terminals = live->terminals,
				 .offsets = live->lids_per_port,
				 .lanes = ours ? (*own)->lanes : 1,
				 .flags = blocks && !assumed ? ROUTES_HAD : 0,
				 .wide = widest(live)};
	if (ours && (*own)->hop_lanes)
		sizes->flags |= ROUTES_HOPS;
	if (ours && (*own)->numbers)
		sizes->flags |= ROUTES_NUMBERS;
	snprintf(sizes->engine, sizeof(sizes->engine), "%.31s", ours ? (*own)->engine : engine);
	return true;
}

/* Whether all switches had confirmed the last routing that was sent. */
static bool all_had_confirmed(struct bridge *b)
{
	bool good;

	pthread_mutex_lock(&b->mutex);
	good = b->routed && !b->unconfirmed;
	pthread_mutex_unlock(&b->mutex);
	return good;
}

/* The caller holds OpenSM's lock and `tables`; the image is written to disk after both are released. */
static struct routes *image_of(struct bridge *b, struct live *live, osm_switch_t **sw, bool lent,
			       struct reason *why)
{
	const struct routes *own;
	struct routes sizes, *r;
	struct assumed assumed = {.used = lent && all_had_confirmed(b)};
	uint8_t *hop_lanes = NULL;
	uint32_t *column = NULL;
	size_t hops;

	if (!sizes_of(b, live, lent, assumed.used, &sizes, &own, why))
		return NULL;
	hops = (size_t)sizes.wide * sizes.wide * live->switches;
	if (own && own->hop_lanes) {
		hop_lanes = calloc(hops, 1);
		if (hop_lanes)
			sizes.lanes = confirmed_lanes(hop_lanes, own, live, sw, sizes.wide);
	}
	r = sizes.flags & ROUTES_HOPS && !hop_lanes ? NULL : routes_blank(&sizes);
	if (!r) {
		REASON(why, "no memory for the dump");
		free(hop_lanes);
		return NULL;
	}
	qsort(live->end, live->terminals, sizeof(*live->end), by_guid);
	assumed.column = column = own && assumed.used ? dump_own_columns(live, own) : NULL;
	assumed.own = column ? own : NULL;
	fill_nodes(r, live, own);
	fill_far_ends(r, live);
	if (own && own->numbers && r->numbers)
		fill_numbers(r, live, own);
	if (!dump_fill_tables(b, r, live, sw, &assumed)) {
		REASON(why, "no memory for the dump");
		routes_drop(r);
		free(column);
		free(hop_lanes);
		return NULL;
	}
	free(column);
	if (hop_lanes)
		memcpy(ROUTES_FILL(uint8_t, r->hop_lanes), hop_lanes, hops);
	free(hop_lanes);
	if (own && own->sl_to_vl && r->sl_to_vl) {
		memcpy(ROUTES_FILL(uint8_t, r->sl_to_vl), own->sl_to_vl, 16);
		for (unsigned o = 0; o < r->offsets; o++)
			ROUTES_FILL(uint8_t, r->fallback_sl)[o] = own->fallback_sl[0];
	}
	return r;
}

/* Until the structures of OpenSM can be read: with its lock, shared, or lent by a routing that waits for the agent, which is
 * true. Otherwise a request waits while an engine computes. */
static bool lock_or_borrow(struct bridge *b)
{
	const struct timespec pause = {.tv_nsec = PAUSE};

	for (;;) {
		if (agent_call_lends(b))
			return true;
		if (!pthread_rwlock_tryrdlock(&b->osm->lock.lock))
			return false;
		nanosleep(&pause, NULL);
	}
}

static uint32_t count_unconfirmed_ports(struct bridge *b, bool lent)
{
	uint32_t ports;

	if (!lent)
		return lanes_count_unconfirmed(b).ports;
	pthread_mutex_lock(&b->mutex);
	ports = b->unconfirmed_ports; /* as of the last routing that was sent */
	pthread_mutex_unlock(&b->mutex);
	return ports;
}

bool dump_in_force(struct bridge *b, struct dump_result *result, struct reason *why)
{
	struct routes *r = NULL;
	osm_switch_t **sw = NULL;
	struct live live;
	const bool lent = lock_or_borrow(b);
	bool good;

	if (live_from_osm(&live, &sw, b->osm, why)) {
		pthread_mutex_lock(&b->tables);
		if (!lent) /* the routing that lends has looked, and OpenSM's new tables are empty */
			tables_look(b, LOOK_DUMP);
		r = image_of(b, &live, sw, lent, why);
		result->digest = tables_digest(b, &live);
		result->unconfirmed_ports = count_unconfirmed_ports(b, lent);
		pthread_mutex_unlock(&b->tables);
	}
	if (lent)
		agent_call_return(b);
	else
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

static bool is_as_loaded(const struct routes *found, const struct routes *loaded)
{
	return found->size == loaded->size && found->flags == loaded->flags && found->generation == loaded->generation &&
	       found->switches == loaded->switches && found->offsets == loaded->offsets &&
	       found->lanes == loaded->lanes && found->wide == loaded->wide && !strcmp(found->engine, loaded->engine) &&
	       !memcmp(found->image + ROUTES_HEADER_SIZE, loaded->image + ROUTES_HEADER_SIZE,
		       found->size - ROUTES_HEADER_SIZE);
}

void dump_compare(struct bridge *b, struct arrival *arrival)
{
	struct reason why = {.text = ""};
	osm_switch_t **sw = NULL;
	struct routes *found = NULL;
	struct live live;

	*arrival = (struct arrival){.same = false};
	if (live_from_osm(&live, &sw, b->osm, &why)) {
		pthread_mutex_lock(&b->tables);
		found = image_of(b, &live, sw, false, &why);
		if (found)
			arrival->digest = tables_digest(b, &live);
		pthread_mutex_unlock(&b->tables);
	}
	live_free(&live);
	free(sw);
	if (!found)
		return;
	arrival->same = is_as_loaded(found, b->in_force->routes);
	arrival->payload_crc = routes_payload_crc(b->in_force->routes);
	routes_drop(found);
}
