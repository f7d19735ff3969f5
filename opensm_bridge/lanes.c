/*
 * Service levels and virtual lanes of the routes in force. With one lane all of this stays as the
 * site configured it; with more, the lanes are what keeps the fabric free of deadlock, so the
 * whole of SL-to-VL and of VL arbitration is ours. Lanes are chosen either by the service level of
 * the path, which hosts have to use then, or hop by hop, by the ports that a packet passes, whatever
 * its service level: path records then keep the site's.
 *
 * OpenSM asks only while our engine is the one in use, and holds its lock.
 */
#include "bridge.h"

static const struct install *with_lanes(const struct bridge *b)
{
	return b->in_force && b->in_force->routes->lanes > 1 ? b->in_force : NULL;
}

uint8_t lanes_path_sl(void *context, uint8_t hint, const ib_net16_t slid, const ib_net16_t dlid)
{
	const struct bridge *b = context;
	const struct install *i = with_lanes(b);
	const unsigned from = cl_ntoh16(slid), to = cl_ntoh16(dlid);
	const struct routes *r;

	if (!i || !i->place)
		return hint;
	r = i->routes;
	if (from > IB_LID_UCAST_END_HO || to > IB_LID_UCAST_END_HO || !i->place[from].known ||
	    !i->place[to].known)
		return r->fallback_sl[0];
	return routes_row(r, r->service_levels, i->place[to].offset,
			  i->place[from].row)[i->place[to].column];
}

void lanes_sl2vl(void *context, osm_physp_t *port, uint8_t in, uint8_t out, ib_slvl_table_t *table)
{
	const struct install *i = with_lanes(context);
	const struct routes *r = i ? i->routes : NULL;
	uint8_t lane = 0; /* what leaves a host is not in any cycle */

	if (r && r->wide) {
		const uint64_t guid = cl_ntoh64(osm_node_get_node_guid(osm_physp_get_node_ptr(port)));
		const uint32_t row = guid_index(r->switch_guid, r->switches, guid);

		lane = row < r->switches ? routes_hop_lane(r, row, in, out) : 0;
	}
	for (uint8_t sl = 0; r && sl < 16; sl++)
		ib_slvl_table_set(table, sl, r->wide ? lane : r->sl_to_vl[sl]);
}

/* Equal shares: each lane once a round in the low table; nothing in the high one. */
void lanes_vlarb(void *context, osm_physp_t *port, uint8_t number, ib_vl_arb_table_t *block,
		 unsigned length, unsigned block_number)
{
	const struct install *i = with_lanes(context);
	const unsigned lanes = i ? i->routes->lanes : 1;
	const unsigned whole_rounds = length < lanes ? length : length - length % lanes;

	(void)port, (void)number;
	for (unsigned e = 0; i && e < length && e < IB_NUM_VL_ARB_ELEMENTS_IN_BLOCK; e++) {
		block->vl_entry[e].vl = (uint8_t)(e % lanes);
		block->vl_entry[e].weight = block_number < 2 && e < whole_rounds ? 64 : 0;
	}
}
