/* See fake_osm.h. What OpenSM would do that the plugin does not need here does nothing. */
#include "fake_osm.h"

#include <stdlib.h>
#include <string.h>

#define HEAD_OF_QUEUE 18 /* OpenSM's default: 1.07 s */
#define SWEEP_SECONDS 0.01

volatile unsigned int osm_exit_flag;
static double now = 1000; /* CLOCK_MONOTONIC */

/* The linker gives the plugin this one (--wrap). */
int __wrap_clock_gettime(clockid_t clock, struct timespec *at);
int __wrap_clock_gettime(clockid_t clock, struct timespec *at)
{
	(void)clock;
	*at = (struct timespec){.tv_sec = (time_t)now, .tv_nsec = (long)((now - (double)(time_t)now) * 1e9)};
	return 0;
}

void fake_sleep(double seconds)
{
	now += seconds;
}

void osm_log(osm_log_t *log, osm_log_level_t level, const char *text, ...)
{
	(void)log, (void)level, (void)text;
}

/* Whether it sweeps is left to the caller. */
void osm_sm_sweep(osm_sm_t *sm)
{
	(void)sm;
}

/* Multicast: the plugin goes on to the next switch. */
cl_status_t osm_switch_set_hops(osm_switch_t *sw, uint16_t lid, uint8_t port, uint8_t hops)
{
	(void)sw, (void)lid, (void)port, (void)hops;
	return CL_ERROR;
}

static struct fake_osm *registering;

uint8_t *fake_has(const struct fake_osm *f, uint32_t s)
{
	return f->sw[s]->priv;
}

/* The answer comes at once. */
ib_api_status_t osm_req_get(osm_sm_t *sm, const osm_dr_path_t *path, ib_net16_t attribute, ib_net32_t modifier, boolean_t find_mkey,
			    ib_net64_t m_key, uint32_t timeout, cl_disp_msgid_t message, const osm_madw_context_t *context)
{
	struct fake_osm *f = registering;

	(void)sm, (void)path, (void)find_mkey, (void)m_key, (void)timeout, (void)message;
	for (uint32_t s = 0; s < f->switches && attribute == IB_MAD_ATTR_LIN_FWD_TBL; s++)
		if (osm_node_get_node_guid(f->sw[s]->p_node) == context->lft_context.node_guid && !f->silent[s])
			osm_switch_set_lft_block(f->sw[s], fake_has(f, s) + cl_ntoh32(modifier) * KNOWN_BLOCK, cl_ntoh32(modifier));
	return IB_SUCCESS;
}

/* A routing waits for the agent, which answers with a load as reload.c queues it. */
int __wrap_pthread_cond_timedwait(pthread_cond_t *changed, pthread_mutex_t *mutex, const struct timespec *until);
int __wrap_pthread_cond_timedwait(pthread_cond_t *changed, pthread_mutex_t *mutex, const struct timespec *until)
{
	struct bridge *b = &registering->bridge;
	struct reason why;

	(void)changed, (void)mutex, (void)until;
	fake_sleep(0.2);
	if (registering->answer && !b->shared.load_routes) {
		b->shared.load_routes = routes_read(registering->answer, &why);
		snprintf(b->shared.proved_from, sizeof(b->shared.proved_from), "any");
		b->shared.asked++;
		registering->answer = NULL;
	}
	if (registering->copied && rename(registering->copied, b->options.routes_path))
		abort();
	registering->copied = NULL;
	return 0;
}

cl_status_t osm_register_external_routing_engine(osm_opensm_t *osm, const external_routing_engine_module_t *module, void *context)
{
	registering->engine = (osm_routing_engine_t){.name = module->name, .context = context};
	return module->setup(&registering->engine, osm) ? CL_ERROR : CL_SUCCESS;
}

struct fake_osm *fake_begin(const char *routes_path)
{
	struct fake_osm *f = calloc(1, sizeof(*f));
	struct reason why;

	if (!f)
		abort();
	f->osm.subn.sm_state = IB_SMINFO_STATE_MASTER;
	f->osm.subn.first_time_master_sweep = TRUE;
	f->osm.subn.opt.head_of_queue_lifetime = f->osm.subn.opt.leaf_head_of_queue_lifetime = HEAD_OF_QUEUE;
	f->osm.subn.port_lid_tbl.size = FAKE_LIDS;
	cl_qmap_init(&f->osm.subn.sw_guid_tbl);
	cl_qmap_init(&f->osm.subn.port_guid_tbl);
	f->other.name = "other";
	f->bridge.osm = &f->osm;
	f->bridge.shared.take_file = true;
	snprintf(f->bridge.options.routes_path, sizeof(f->bridge.options.routes_path), "%s", routes_path);
	pthread_mutex_init(&f->bridge.shared.lock, NULL);
	pthread_mutex_init(&f->bridge.tables.lock, NULL);
	pthread_cond_init(&f->bridge.shared.changed, NULL);
	registering = f;
	if (!engine_register(&f->bridge, &why))
		abort();
	return f;
}

static void free_switch(osm_switch_t *sw)
{
	free(sw->p_node);
	free(sw->lft);
	free(sw->new_lft);
	free(sw->priv);
	free(sw);
}

void fake_end(struct fake_osm *f)
{
	for (uint32_t s = 0; s < f->switches; s++)
		free_switch(f->sw[s]);
	install_free(f->bridge.routing.next);
	install_free(f->bridge.routing.in_force);
	known_free(&f->bridge.tables.known);
	routes_drop(f->bridge.shared.load_routes);
	routes_drop(f->bridge.shared.last_good);
	free(f);
}

void fake_lose_master(struct fake_osm *f)
{
	f->osm.subn.sm_state = IB_SMINFO_STATE_STANDBY;
	events_report(&f->bridge, OSM_EVENT_ID_STATE_CHANGE, NULL);
	f->osm.subn.sm_state = IB_SMINFO_STATE_MASTER;
	f->osm.subn.first_time_master_sweep = TRUE;
}

/* Of which OpenSM knows no table yet. */
static osm_switch_t *new_switch(uint64_t guid, uint8_t ports)
{
	osm_switch_t *sw = calloc(1, sizeof(*sw));

	if (!sw)
		abort();
	sw->p_node = calloc(1, sizeof(*sw->p_node) + (ports + 1) * sizeof(osm_physp_t));
	sw->lft = malloc(FAKE_LIDS);
	sw->new_lft = malloc(FAKE_LIDS);
	sw->priv = malloc(FAKE_LIDS); /* what the switch has */
	if (!sw->p_node || !sw->lft || !sw->new_lft || !sw->priv)
		abort();
	sw->p_node->sw = sw;
	sw->p_node->physp_tbl_size = ports + 1u;
	sw->p_node->node_info.node_guid = cl_hton64(guid);
	sw->p_node->physp_table[0].port_guid = cl_hton64(guid); /* it is valid */
	sw->num_ports = (uint8_t)(ports + 1);
	sw->max_lid_ho = FAKE_LIDS - 1;
	sw->lft_size = FAKE_LIDS;
	sw->switch_info.lin_top = cl_hton16(FAKE_LIDS - 1);
	memset(sw->lft, ENTRY_NO_ROUTE, FAKE_LIDS);
	memset(sw->priv, ENTRY_NO_ROUTE, FAKE_LIDS);
	memset(sw->new_lft, ENTRY_NO_ROUTE, FAKE_LIDS);
	return sw;
}

static osm_switch_t *take_switch(struct fake_osm *f, uint64_t guid)
{
	for (uint32_t s = 0; s < f->switches; s++)
		if (f->sw[s] && cl_ntoh64(osm_node_get_node_guid(f->sw[s]->p_node)) == guid) {
			osm_switch_t *found = f->sw[s];

			f->sw[s] = NULL;
			return found;
		}
	return NULL;
}

void fake_discover(struct fake_osm *f, const uint64_t *guids, const uint8_t *ports, const bool *silent, uint32_t switches)
{
	osm_switch_t *found[FAKE_MOST];

	fake_sleep(SWEEP_SECONDS);
	events_report(&f->bridge, OSM_EVENT_ID_HEAVY_SWEEP_START, NULL);
	for (uint32_t s = 0; s < switches; s++) {
		found[s] = take_switch(f, guids[s]);
		found[s] = found[s] ? found[s] : new_switch(guids[s], ports[s]);
	}
	for (uint32_t s = 0; s < f->switches; s++)
		if (f->sw[s])
			free_switch(f->sw[s]);
	cl_qmap_init(&f->osm.subn.sw_guid_tbl);
	for (uint32_t s = 0; s < switches; s++)
		cl_qmap_insert(&f->osm.subn.sw_guid_tbl, osm_node_get_node_guid(found[s]->p_node), &found[s]->map_item);
	memcpy(f->sw, found, switches * sizeof(*found));
	memcpy(f->silent, silent, switches * sizeof(*silent));
	f->switches = switches;
	events_report(&f->bridge, OSM_EVENT_ID_HEAVY_SWEEP_DONE, NULL);
}

static void begin_routing(struct fake_osm *f)
{
	f->osm.subn.force_reroute = f->osm.subn.force_heavy_sweep = FALSE;
	f->osm.routing_engine_used = NULL;
	for (uint32_t s = 0; s < f->switches; s++)
		memset(f->sw[s]->new_lft, ENTRY_NO_ROUTE, FAKE_LIDS);
}

/* Blocks that differ; a switch that does not answer leaves zeros in OpenSM's copy. */
static void send_tables(struct fake_osm *f, osm_routing_engine_t *used)
{
	f->osm.routing_engine_used = used;
	for (uint32_t s = 0; s < f->switches; s++)
		for (uint32_t at = 0; at < FAKE_LIDS; at += KNOWN_BLOCK) {
			uint8_t *has = f->sw[s]->lft + at;
			const uint8_t *new = f->sw[s]->new_lft + at;

			if (!memcmp(has, new, KNOWN_BLOCK) && !f->osm.subn.first_time_master_sweep)
				continue;
			memset(has, 0, KNOWN_BLOCK);
			if (f->silent[s])
				continue;
			memcpy(has, new, KNOWN_BLOCK);
			memcpy(fake_has(f, s) + at, new, KNOWN_BLOCK);
		}
	events_report(&f->bridge, OSM_EVENT_ID_UCAST_ROUTING_DONE, NULL);
	f->osm.subn.first_time_master_sweep = FALSE;
	events_report(&f->bridge, OSM_EVENT_ID_SUBNET_UP, NULL);
}

bool fake_route(struct fake_osm *f)
{
	begin_routing(f);
	f->bridge.shared.listening = f->bridge.options.repair_wait = f->answer || f->copied;
	if (f->engine.build_lid_matrices(f->engine.context) || f->engine.ucast_build_fwd_tables(f->engine.context))
		return false;
	send_tables(f, &f->engine);
	return true;
}

void fake_route_other(struct fake_osm *f, const uint8_t *entry)
{
	begin_routing(f);
	for (uint32_t s = 0; s < f->switches; s++)
		memcpy(f->sw[s]->new_lft, entry + (size_t)s * FAKE_LIDS, FAKE_LIDS);
	send_tables(f, &f->other);
}

bool fake_is_asked(const struct fake_osm *f)
{
	return f->osm.subn.force_reroute || f->osm.subn.force_heavy_sweep;
}
