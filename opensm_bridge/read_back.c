/*
 * What the switches have when this OpenSM is master again: another subnet manager was it meanwhile, and nobody here knows what it has
 * installed, so the kept routes may be older. OpenSM only reads back what it has sent. So after discovery the plugin asks each
 * switch for its table, by OpenSM's own requests. The answers replace OpenSM's copy (`lft`), at which tables.c looks when the
 * routing begins. A block that is not answered stays zero: nothing is known of it.
 *
 * When OpenSM has just started, or takes over for the first time, it has no copy yet that could be filled; see own.c.
 *
 * **Weak spots:** that OpenSM waits for these answers before it routes, and that it holds no lock when it reports a discovery, is
 * read from 3.3.23. Packets that came by tables which the other subnet manager has replaced within the last seconds are not counted with.
 */
#include <string.h>

#include "bridge.h"

static void ask(struct bridge *b, osm_switch_t *sw)
{
	osm_physp_t *port = osm_node_get_physp_ptr(sw->p_node, 0);
	const uint32_t top = cl_ntoh16(sw->switch_info.lin_top);
	osm_madw_context_t context = {.lft_context = {.node_guid = osm_node_get_node_guid(sw->p_node), .set_method = FALSE}};

	if (sw->lft)
		memset(sw->lft, 0, sw->lft_size);
	for (uint32_t at = 0; port && sw->lft && at <= top && at + KNOWN_BLOCK <= sw->lft_size; at += KNOWN_BLOCK)
		osm_req_get(&b->osm->sm, osm_physp_get_dr_path_ptr(port), IB_MAD_ATTR_LIN_FWD_TBL, cl_hton32(at / KNOWN_BLOCK),
			    FALSE, ib_port_info_get_m_key(&port->port_info), 0, CL_DISP_MSGID_NONE, &context);
}

void read_back(struct bridge *b)
{
	bool back;

	pthread_mutex_lock(&b->shared.lock);
	back = b->shared.highest && (b->shared.take_file || (b->osm->subn.first_time_master_sweep && !b->routing.taken_over));
	pthread_mutex_unlock(&b->shared.lock);
	if (!back)
		return;
	pthread_rwlock_wrlock(&b->osm->lock.lock);
	pthread_mutex_lock(&b->tables.lock);
	tables_forget(b);
	tables_expect(b);
	EACH_SWITCH(sw, &b->osm->subn)
		ask(b, sw);
	pthread_mutex_unlock(&b->tables.lock);
	pthread_rwlock_unlock(&b->osm->lock.lock);
}
