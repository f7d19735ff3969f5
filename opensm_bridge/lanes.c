/*
 * Service levels and virtual lanes of the routes in force. With one lane, all of this stays as the site configured it.
 * With more, the lanes keep the fabric free of deadlock, so the plugin controls SL-to-VL mapping and VL arbitration
 * completely. Lanes are chosen either by the service level of the path, which hosts then must use, or hop by hop, by the
 * ports through which a packet passes, whatever its service level; path records then keep the site's.
 *
 * OpenSM calls these functions only while the plugin's engine is in use, and holds its lock. **Weak spot:** read from 3.3.23. If it
 * called them for another engine's routes, it would send lanes of the plugin's routes with the other's tables, which is not proved.
 */
#include <string.h>

#include "bridge.h"
#include "guid.h"

static const struct install *with_lanes(const struct bridge *b)
{
	return b->routing.in_force && b->routing.in_force->tables.routes->lanes > 1 ? b->routing.in_force : NULL;
}

uint8_t lanes_path_sl(void *context, uint8_t hint, const ib_net16_t slid, const ib_net16_t dlid)
{
	const struct bridge *b = context;
	const struct install *i = with_lanes(b);
	const unsigned from = cl_ntoh16(slid), to = cl_ntoh16(dlid);
	const struct routes *r = i ? i->tables.routes : NULL;

	if (!r || !r->service_levels)
		return hint;
	if (from >= UNICAST_LIDS || to >= UNICAST_LIDS || !i->place[from].known || !i->place[to].known)
		return r->fallback_sl[0];
	return routes_row(r, r->service_levels, i->place[to].offset, i->place[from].row)[i->place[to].column];
}

/* Sets `table` to what OpenSM should send to a port; false if the site's configuration decides. */
static bool planned(const struct install *i, osm_physp_t *port, uint8_t in, uint8_t out,
		    ib_slvl_table_t *table)
{
	const struct routes *r = i ? i->tables.routes : NULL;
	uint8_t lane = 0; /* for hosts: the channel out of a host is in no cycle */

	if (!r)
		return false;
	if (r->hop_lanes) {
		const uint64_t guid = cl_ntoh64(osm_node_get_node_guid(osm_physp_get_node_ptr(port)));
		const uint32_t row = routes_switch(r, guid);

		lane = row < r->switches ? routes_hop_lane(r, row, in, out) : 0;
	}
	for (uint8_t sl = 0; sl < 16; sl++)
		ib_slvl_table_set(table, sl, r->hop_lanes ? lane : r->sl_to_vl[sl]);
	return true;
}

/* Limits the table to the lanes that the port has, as OpenSM does. */
static void cut(ib_slvl_table_t *table, const osm_physp_t *port)
{
	const unsigned code = ib_port_info_get_op_vls(&port->port_info);
	const unsigned lanes = code ? (1u << (code - 1)) - 1 : 15; /* 0: the port does not say */

	for (uint8_t sl = 0; sl < 16; sl++)
		if (ib_slvl_table_get(table, sl) != ROUTES_DROPPED)
			ib_slvl_table_set(table, sl, ib_slvl_table_get(table, sl) & (uint8_t)lanes);
}

static const ib_slvl_table_t all_zero;
/* A table that no plan contains: it maps levels to lanes 13 and 14, but none to 0. */
static const ib_slvl_table_t unanswered = {{0xde, 0xed, 0xde, 0xed, 0xde, 0xed, 0xde, 0xed}};

/*
 * OpenSM zeroes its copy of a table when it sends the table, until the port answers. If the table itself is all zero, an
 * answer cannot be distinguished from a missing one, and OpenSM would never send the table again. So such a copy is marked
 * once OpenSM has zeroed it: in the call for the next table, because answers wait for the lock that OpenSM holds during all
 * these calls. (The very last table stays unmarked: it is that of a host, or that of a hop that leaves a switch by the port
 * through which it entered.)
 */
static void mark(struct bridge *b, osm_physp_t *port, uint8_t in, const ib_slvl_table_t *table, bool is_sent)
{
	ib_slvl_table_t *last = b->routing.unmarked ? osm_physp_get_slvl_tbl(b->routing.unmarked, b->routing.unmarked_in) : NULL;

	if (last && !memcmp(last, &all_zero, sizeof(all_zero)))
		*last = unanswered;
	b->routing.unmarked = NULL;
	if (!is_sent || memcmp(table, &all_zero, sizeof(all_zero)))
		return;
	b->routing.unmarked = port;
	b->routing.unmarked_in = in;
}

void lanes_sl2vl(void *context, osm_physp_t *port, uint8_t in, uint8_t out, ib_slvl_table_t *table)
{
	struct bridge *b = context;
	const bool ours = planned(with_lanes(b), port, in, out, table);
	ib_slvl_table_t next = *table;
	bool is_sent;

	cut(&next, port);
	/* OpenSM's own rule, right after this call */
	is_sent = port->need_update || b->osm->subn.need_update ||
		  memcmp(osm_physp_get_slvl_tbl(port, in), &next, sizeof(next));
	b->sl2vl_tables += is_sent && port->p_node->sw;
	if (ours)
		mark(b, port, in, &next, is_sent);
}

bool lanes_are_unanswered(const ib_slvl_table_t *table)
{
	return !memcmp(table, &unanswered, sizeof(unanswered));
}

/* Between switches the lanes must be the plan's; toward a host they may be limited to the lanes that the host has. */
static bool confirmed(const struct install *i, osm_physp_t *port, uint8_t in, uint8_t out)
{
	const osm_physp_t *far = port->p_remote_physp;
	ib_slvl_table_t table = all_zero;

	if (!planned(i, port, in, out, &table))
		return true;
	if (!far || !far->p_node->sw)
		cut(&table, port);
	return !memcmp(osm_physp_get_slvl_tbl(port, in), &table, sizeof(table));
}

static bool is_live(osm_physp_t *port)
{
	return port && ib_port_info_get_port_state(&port->port_info) != IB_LINK_DOWN;
}

static uint32_t count_tables(const struct install *i, osm_physp_t *port, unsigned out, unsigned ports)
{
	uint32_t count = 0;

	for (unsigned in = 0; in < ports; in++)
		count += !confirmed(i, port, (uint8_t)in, (uint8_t)out);
	return count;
}

/*
 * Counts the tables of switches that are not the plan's, as far as OpenSM knows, and their ports. Hosts do not count: the lane by
 * which a packet enters its leaf switch has no effect there, and a host that boots must not keep routes from being in force.
 */
struct lanes_count lanes_count_unconfirmed(const struct bridge *b)
{
	const struct osm_routing_engine *used = b->osm->routing_engine_used;
	const struct install *i = used && used->context == b ? with_lanes(b) : NULL;
	struct lanes_count count = {0};

	if (!i)
		return count;
	EACH_SWITCH(sw, &b->osm->subn) {
		const unsigned ports = osm_node_get_num_physp(sw->p_node);

		for (unsigned out = 1; out < ports; out++) {
			osm_physp_t *port = osm_node_get_physp_ptr(sw->p_node, out);
			const uint32_t tables = is_live(port) ? count_tables(i, port, out, ports) : 0;

			count.tables += tables;
			count.ports += tables != 0;
		}
	}
	return count;
}

/* Hashes everything that OpenSM knows of the lanes of the plugin's routes in force. */
uint64_t lanes_digest(const struct bridge *b, uint64_t hash)
{
	if (!with_lanes(b))
		return hash;
	EACH_SWITCH(sw, &b->osm->subn) {
		const unsigned ports = osm_node_get_num_physp(sw->p_node);

		for (unsigned out = 1; out < ports; out++) {
			osm_physp_t *port = osm_node_get_physp_ptr(sw->p_node, out);

			for (unsigned in = 0; is_live(port) && in < ports; in++) {
				uint64_t word;

				memcpy(&word, osm_physp_get_slvl_tbl(port, (uint8_t)in), sizeof(word));
				hash = hash_mix(hash, word ^ (uint64_t)in << 56 ^ (uint64_t)out << 48);
			}
		}
	}
	return hash;
}

/* Equal shares: each lane once per round in the low-priority table; the high-priority table is empty. */
void lanes_vlarb(void *context, osm_physp_t *port, uint8_t number, ib_vl_arb_table_t *block,
		 unsigned length, unsigned block_number)
{
	const struct install *i = with_lanes(context);
	const unsigned lanes = i ? i->tables.routes->lanes : 1;
	const unsigned whole_rounds = length < lanes ? length : length - length % lanes;

	(void)port, (void)number;
	for (unsigned e = 0; i && e < length && e < IB_NUM_VL_ARB_ELEMENTS_IN_BLOCK; e++) {
		block->vl_entry[e].vl = (uint8_t)(e % lanes);
		block->vl_entry[e].weight = block_number < 2 && e < whole_rounds ? 64 : 0;
	}
}
