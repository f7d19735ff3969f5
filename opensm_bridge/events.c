/*
 * What OpenSM reports, turned into what `status` says. Some events come with OpenSM's lock held,
 * so no lock of OpenSM's is taken here. UCAST_ROUTING_DONE comes from the sweep thread after all
 * of the tables were sent and answered: the one moment when "in force" is a fact.
 */
#include <string.h>

#include "bridge.h"

static uint32_t count_unconfirmed(const osm_subn_t *subn)
{
	uint32_t count = 0;

	for (cl_map_item_t *item = cl_qmap_head(&subn->sw_guid_tbl);
	     item != cl_qmap_end(&subn->sw_guid_tbl); item = cl_qmap_next(item)) {
		const osm_switch_t *sw = (const osm_switch_t *)item;

		/* OpenSM zeroes its copy of a block until the switch has answered. */
		if (sw->new_lft && memcmp(sw->lft, sw->new_lft, sw->max_lid_ho + 1u))
			count++;
	}
	return count;
}

static uint32_t count_hca_ports(const osm_subn_t *subn)
{
	uint32_t count = 0;

	for (cl_map_item_t *item = cl_qmap_head(&subn->port_guid_tbl);
	     item != cl_qmap_end(&subn->port_guid_tbl); item = cl_qmap_next(item))
		count += !((const osm_port_t *)item)->p_node->sw;
	return count;
}

static void routing_done(struct bridge *b)
{
	const osm_subn_t *subn = &b->osm->subn;
	const struct osm_routing_engine *used = b->osm->routing_engine_used;
	const char *name = used && used->name ? used->name : "none";
	const bool ours = !strcmp(name, SAR_ENGINE) && b->in_force;
	const uint32_t unconfirmed = count_unconfirmed(subn), hca_ports = count_hca_ports(subn);

	pthread_mutex_lock(&b->mutex);
	snprintf(b->engine_in_force, sizeof(b->engine_in_force), "%s", name);
	snprintf(b->routes_engine, sizeof(b->routes_engine), "%s",
		 ours ? b->in_force->routes->engine : "");
	b->generation_in_force = ours ? b->in_force->routes->generation : 0;
	b->lanes = ours ? b->in_force->routes->lanes : 0;
	b->unknown = ours ? b->in_force->fit.unknown : 0;
	b->vanished = ours ? b->in_force->fit.vanished : 0;
	b->unconfirmed = unconfirmed;
	if (unconfirmed && !*b->last_error.text)
		REASON(&b->last_error, "%u switch(es) have not confirmed their tables; OpenSM will "
				       "send them again", unconfirmed);
	b->switches = (uint32_t)cl_qmap_count(&subn->sw_guid_tbl);
	b->hca_ports = hca_ports;
	b->built = b->building;
	b->built_at = time(NULL);
	b->routed = true;
	b->routings++;
	pthread_cond_broadcast(&b->changed);
	pthread_mutex_unlock(&b->mutex);
	if (ours && !unconfirmed)
		BRIDGE_LOG(b, OSM_LOG_INFO, "generation %ju is in force\n",
			   (uintmax_t)b->in_force->routes->generation);
}

/*
 * Until a heavy sweep after the first, OpenSM sends every block of every table at each reroute,
 * since it does not trust what it believes of new switches. So have that sweep now.
 */
static void prime(struct bridge *b)
{
	if (b->primed || b->osm->subn.sm_state != IB_SMINFO_STATE_MASTER)
		return;
	b->primed = true;
	b->osm->subn.force_heavy_sweep = TRUE;
	osm_opensm_sweep(b->osm);
}

void events_report(void *context, osm_epi_event_id_t event, void *data)
{
	struct bridge *b = context;

	(void)data;
	switch (event) {
	case OSM_EVENT_ID_LFT_CHANGE:
		b->lft_blocks++;
		break;
	case OSM_EVENT_ID_HEAVY_SWEEP_DONE:
		b->heavy_sweeps++;
		break;
	case OSM_EVENT_ID_UCAST_ROUTING_DONE:
		routing_done(b);
		break;
	case OSM_EVENT_ID_SUBNET_UP:
		prime(b);
		break;
	case OSM_EVENT_ID_STATE_CHANGE: /* not master any more: a takeover starts afresh */
		b->primed = false;
		pthread_mutex_lock(&b->mutex);
		pthread_cond_broadcast(&b->changed);
		pthread_mutex_unlock(&b->mutex);
		break;
	default:
		break;
	}
}
