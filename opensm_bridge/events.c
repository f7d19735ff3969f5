/*
 * Turns OpenSM's event reports into the state that `status` answers. OpenSM holds its lock during some events, so none of
 * its locks is taken here. UCAST_ROUTING_DONE comes from the sweep thread after all tables were sent and answered: only
 * then is it certain what is in force.
 *
 * **Weak spot:** the order of these events is read from 3.3.23. If UCAST_ROUTING_DONE came earlier, tables that are not answered
 * yet would count as unconfirmed, and second steps would come later; if a heavy sweep did not report its start or its discovery,
 * a switch that was reset meanwhile could count as having its tables (tables.c).
 */
#include <string.h>

#include "bridge.h"
#include "clock.h"

#define FOLLOW_INTERVAL_SECONDS 2 /* seconds: a sweep that was under way may have ignored the request */

static uint32_t count_hca_ports(const osm_subn_t *subn)
{
	uint32_t count = 0;

	EACH_PORT(port, subn)
		count += !port->p_node->sw;
	return count;
}

static void look(struct bridge *b, enum look when)
{
	pthread_mutex_lock(&b->tables.lock);
	tables_look(b, when);
	pthread_mutex_unlock(&b->tables.lock);
}

static void note_unconfirmed(struct bridge *b)
{
	if ((b->shared.unconfirmed || b->shared.unconfirmed_ports) && !*b->shared.last_error.text)
		REASON_OF(&b->shared.last_error, "unconfirmed", "%u switch(es) have not confirmed their tables "
			  "(%u block(s)), and %u port(s) their lanes; OpenSM will send them again",
			  b->shared.unconfirmed, b->shared.unconfirmed_blocks, b->shared.unconfirmed_ports);
}

/* All switches have confirmed what was sent: the entries that had to wait for that are set once packets of older tables are gone,
 * too. */
static void follow_repair(struct bridge *b, const struct install *in_force)
{
	if (!follow_needed(b->routing.was_settled, &in_force->tables))
		return;
	pthread_mutex_lock(&b->tables.lock);
	pthread_mutex_lock(&b->shared.lock);
	b->shared.follow_at = b->tables.known.ages ? b->tables.older_gone_at : clock_seconds();
	pthread_mutex_unlock(&b->shared.lock);
	pthread_mutex_unlock(&b->tables.lock);
}

void events_follow(struct bridge *b)
{
	pthread_mutex_lock(&b->shared.lock);
	if (b->shared.follow_at && clock_seconds() >= b->shared.follow_at && !b->shared.stopping && state_is_master(b)) {
		b->shared.follow_at = clock_seconds() + FOLLOW_INTERVAL_SECONDS;
		state_request_routing(b);
	}
	pthread_mutex_unlock(&b->shared.lock);
}

static void routing_done(struct bridge *b)
{
	const osm_subn_t *subn = &b->osm->subn;
	const struct osm_routing_engine *used = b->osm->routing_engine_used;
	const char *name = used && used->name ? used->name : "none";
	const bool ours = !strcmp(name, SAR_ENGINE) && b->routing.in_force;
	const uint32_t hca_ports = count_hca_ports(subn);
	const struct lanes_count lanes = lanes_count_unconfirmed(b);
	const struct amendment *amended = ours ? b->routing.in_force->tables.routes->amended : NULL;
	uint32_t switches, blocks;

	look(b, LOOK_DONE);
	pthread_mutex_lock(&b->tables.lock);
	known_count(&b->tables.known, &switches, &blocks);
	pthread_mutex_unlock(&b->tables.lock);
	pthread_mutex_lock(&b->shared.lock);
	snprintf(b->shared.engine_in_force, sizeof(b->shared.engine_in_force), "%s", name);
	snprintf(b->shared.routes_engine, sizeof(b->shared.routes_engine), "%s",
		 ours ? b->routing.in_force->tables.routes->engine : "");
	b->shared.generation_in_force = ours ? b->routing.in_force->tables.routes->generation : 0;
	b->shared.amendments = amended ? amended->repairs : 0;
	b->shared.amended_entries = amended ? amended->entries : 0;
	b->shared.repair_drops = ours && b->routing.in_force->tables.drops;
	b->shared.repair_milliseconds = amended ? amended->milliseconds : 0;
	b->shared.lanes = ours ? b->routing.in_force->tables.routes->lanes : 0;
	b->shared.unknown = ours ? b->routing.in_force->tables.fit.unknown : 0;
	b->shared.vanished = ours ? b->routing.in_force->tables.fit.vanished : 0;
	b->shared.unconfirmed = switches;
	b->shared.unconfirmed_blocks = blocks;
	b->shared.unconfirmed_ports = lanes.ports;
	b->shared.unconfirmed_tables = lanes.tables;
	note_unconfirmed(b);
	b->shared.switches = (uint32_t)cl_qmap_count(&subn->sw_guid_tbl);
	b->shared.hca_ports = hca_ports;
	b->shared.phase = IDLE;
	b->shared.built = b->shared.building;
	b->shared.built_at = time(NULL);
	b->shared.routed = true;
	b->shared.routings++;
	pthread_cond_broadcast(&b->shared.changed);
	pthread_mutex_unlock(&b->shared.lock);
	if (ours) { /* OpenSM computes multicast next, and needs hop counts for it; it reads them in this thread only */
		install_hops(b->routing.in_force);
		install_forget_osm(b->routing.in_force);
	}
	if (!ours || switches || lanes.ports)
		return;
	BRIDGE_LOG(b, OSM_LOG_INFO, "generation %ju is in force%s\n", (uintmax_t)b->routing.in_force->tables.routes->generation,
		   amended ? ", repaired" : "");
	follow_repair(b, b->routing.in_force);
}

/*
 * Requests another heavy sweep if one is needed. Until the second heavy sweep, OpenSM sends every block of every table at
 * each reroute, because it does not trust its copy of a new switch's tables; so that sweep happens now. Also, if a link
 * came up during this sweep, OpenSM limited the plan's lanes to the one lane that the link had before it was configured;
 * the next sweep sends them in full.
 */
static void sweep_again(struct bridge *b)
{
	bool sweep = !b->routing.primed;

	if (!state_is_master(b))
		return;
	pthread_mutex_lock(&b->shared.lock);
	if (b->shared.unconfirmed_ports && !b->shared.lanes_asked)
		sweep = true;
	b->shared.lanes_asked = b->shared.unconfirmed_ports != 0;
	pthread_mutex_unlock(&b->shared.lock);
	b->routing.primed = true;
	if (!sweep)
		return;
	b->osm->subn.force_heavy_sweep = TRUE;
	osm_opensm_sweep(b->osm);
}

static void sweep_begins(struct bridge *b)
{
	look(b, LOOK_SWEEP);
	pthread_mutex_lock(&b->shared.lock);
	b->shared.phase = SWEEPING;
	pthread_mutex_unlock(&b->shared.lock);
}

static void lost_master(struct bridge *b)
{
	b->routing.primed = false;
	pthread_mutex_lock(&b->tables.lock);
	tables_forget(b);
	pthread_mutex_unlock(&b->tables.lock);
	pthread_mutex_lock(&b->shared.lock);
	state_lost_master(b);
	pthread_mutex_unlock(&b->shared.lock);
}

/*
 * A master whose sweep finds one of higher priority hands over to it and reports no change of its state. When it discovers the fabric
 * again, to take over, another one has been master.
 */
static void notice_another_master(struct bridge *b)
{
	bool before;

	pthread_mutex_lock(&b->shared.lock);
	before = b->shared.highest;
	pthread_mutex_unlock(&b->shared.lock);
	if (before && !state_is_master(b))
		lost_master(b);
}

void events_report(void *context, osm_epi_event_id_t event, void *data)
{
	struct bridge *b = context;

	(void)data;
	switch (event) {
	case OSM_EVENT_ID_LFT_CHANGE: /* with OpenSM's lock */
		b->lft_blocks++;
		break;
	case OSM_EVENT_ID_HEAVY_SWEEP_START:
		sweep_begins(b);
		break;
	case OSM_EVENT_ID_HEAVY_SWEEP_DONE:
		b->heavy_sweeps++;
		notice_another_master(b);
		look(b, LOOK_DISCOVERED);
		read_back(b);
		break;
	case OSM_EVENT_ID_UCAST_ROUTING_DONE:
		routing_done(b);
		break;
	case OSM_EVENT_ID_SUBNET_UP:
		b->routing.taken_over = false;
		sweep_again(b);
		break;
	case OSM_EVENT_ID_STATE_CHANGE: /* no longer the master */
		lost_master(b);
		break;
	default:
		break;
	}
}
