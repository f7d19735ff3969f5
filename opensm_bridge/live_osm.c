/* Reads the fabric from OpenSM's structures into plain arrays (live.h). The caller holds OpenSM's lock. */
#include <stdlib.h>
#include <string.h>

#include "bridge.h"

static int by_guid(const void *a, const void *b)
{
	const osm_switch_t *const *x = a, *const *y = b;
	const uint64_t gx = cl_ntoh64(osm_node_get_node_guid((*x)->p_node));
	const uint64_t gy = cl_ntoh64(osm_node_get_node_guid((*y)->p_node));

	return gx < gy ? -1 : gx > gy;
}

static uint32_t index_of(osm_switch_t **sw, uint32_t count, osm_switch_t *key)
{
	osm_switch_t **entry = bsearch(&key, sw, count, sizeof(*sw), by_guid);

	return entry ? (uint32_t)(entry - sw) : NO_PEER;
}

/* PortInfo encodes VLCap and OperationalVLs: 1, 2, 3, 4, 5 stand for 1, 2, 4, 8, 15 data lanes. */
static unsigned lanes_of(unsigned code)
{
	return code >= 5 ? 15 : code ? 1u << (code - 1) : 1;
}

/*
 * The number of lanes that a link will have once OpenSM has configured it. OperationalVLs cannot be used: on a port that
 * just came up it may be lower until the last step of the sweep.
 */
static unsigned link_lanes(const osm_subn_t *subn, const osm_physp_t *port)
{
	const osm_physp_t *ends[] = {port, port->p_remote_physp};
	unsigned lanes = lanes_of(subn->opt.max_op_vls);

	for (int i = 0; i < 2; i++) {
		const unsigned cap = lanes_of(ib_port_info_get_vl_cap(&ends[i]->port_info));
		const unsigned arb = ends[i]->port_info.vl_arb_low_cap;

		lanes = cap < lanes ? cap : lanes;
		/* Fewer arbitration entries than lanes would starve the last lanes. */
		lanes = arb && arb < lanes ? arb : lanes;
	}
	return lanes;
}

/*
 * Whether a port carries no packets but the subnet manager's until OpenSM activates it, which it does after it has sent the
 * tables. **Weak spot:** that OpenSM's copy of the state is up to date at each routing (a sweep reads it before, and OpenSM
 * takes it from the answers when it activates ports) is inferred from 3.3.23's source.
 */
static bool is_fresh(const osm_physp_t *port)
{
	return osm_physp_get_port_state(port) == IB_LINK_INIT;
}

static void read_links(struct live *live, osm_switch_t **sw, const osm_subn_t *subn)
{
	for (uint32_t s = 0; s < live->switches; s++)
		for (unsigned p = 1; p <= live->sw[s].ports; p++) {
			osm_physp_t *port = osm_node_get_physp_ptr(sw[s]->p_node, p);
			osm_physp_t *far = port ? port->p_remote_physp : NULL;
			uint32_t *peer = &live->peer[live->sw[s].first_port + p];

			*peer = NO_PEER;
			if (!far || !far->p_node->sw || far->p_node->sw == sw[s] ||
			    !osm_link_is_healthy(port))
				continue;
			*peer = index_of(sw, live->switches, far->p_node->sw);
			live->peer_port[live->sw[s].first_port + p] = osm_physp_get_port_num(far);
			live->fresh[live->sw[s].first_port + p] = is_fresh(port) || is_fresh(far);
			if (link_lanes(subn, port) < live->data_lanes)
				live->data_lanes = link_lanes(subn, port);
		}
}

static uint32_t read_switches(struct live *live, osm_switch_t **sw, osm_subn_t *subn)
{
	uint32_t count = 0, ports = 0;

	EACH_SWITCH(item, subn)
		sw[count++] = item;
	qsort(sw, count, sizeof(*sw), by_guid);
	for (uint32_t s = 0; s < count; s++) {
		struct live_switch *to = &live->sw[s];
		osm_port_t *port = osm_get_port_by_guid(
			subn, osm_physp_get_port_guid(osm_node_get_physp_ptr(sw[s]->p_node, 0)));

		to->guid = cl_ntoh64(osm_node_get_node_guid(sw[s]->p_node));
		to->name = sw[s]->p_node->print_desc;
		to->ports = (uint8_t)(sw[s]->num_ports - 1);
		if (!(osm_node_get_physp_ptr(sw[s]->p_node, 0)->port_info.capability_mask &
		      IB_PORT_CAP_HAS_SL_MAP))
			live->sl2vl = false;
		to->first_port = ports;
		ports += sw[s]->num_ports;
		if (port)
			osm_port_get_lid_range_ho(port, &to->lid_low, &to->lid_high);
	}
	return ports;
}

static void read_terminals(struct live *live, osm_switch_t **sw, osm_subn_t *subn)
{
	EACH_PORT(port, subn) {
		osm_physp_t *far = port->p_physp ? port->p_physp->p_remote_physp : NULL;
		struct live_terminal *to = &live->end[live->terminals];

		if (port->p_node->sw || osm_node_get_type(port->p_node) == IB_NODE_TYPE_SWITCH ||
		    !far || !far->p_node->sw)
			continue;
		osm_port_get_lid_range_ho(port, &to->lid_low, &to->lid_high);
		to->guid = cl_ntoh64(osm_port_get_guid(port));
		to->leaf = index_of(sw, live->switches, far->p_node->sw);
		to->leaf_port = osm_physp_get_port_num(far);
		if (to->lid_low && to->leaf != NO_PEER)
			live->terminals++;
	}
}

bool live_from_osm(struct live *live, osm_switch_t ***sw, osm_opensm_t *osm, struct reason *why)
{
	osm_subn_t *subn = &osm->subn;
	const size_t switches = cl_qmap_count(&subn->sw_guid_tbl);
	const size_t terminals = cl_qmap_count(&subn->port_guid_tbl);
	uint32_t ports;

	*live = (struct live){.switches = (uint32_t)switches,
			      .lids_per_port = 1u << subn->opt.lmc,
			      .data_lanes = 15,
			      .sl2vl = true,
			      .qos = subn->opt.qos};
	*sw = calloc(switches + 1, sizeof(**sw));
	live->sw = calloc(switches + 1, sizeof(*live->sw));
	live->end = calloc(terminals + 1, sizeof(*live->end));
	if (!*sw || !live->sw || !live->end)
		REFUSE("no memory to read the fabric");
	ports = read_switches(live, *sw, subn);
	live->peer = calloc(ports + 1, sizeof(*live->peer));
	live->peer_port = calloc(ports + 1, sizeof(*live->peer_port));
	live->fresh = calloc(ports + 1, sizeof(*live->fresh));
	if (!live->peer || !live->peer_port || !live->fresh)
		REFUSE("no memory to read the fabric");
	read_links(live, *sw, subn);
	read_terminals(live, *sw, subn);
	return true;
}
