/*
 * The answer to `status`: a table of name, type and value. PluginStatus of the agent (sar_agent/opensm/plugin_client.py) has the
 * same names, which tests/unit/test_bridge_client.py compares; what each one means is said there.
 */
#include <unistd.h>

#include "bridge.h"
#include "json.h"

static const char *sm_state(const struct bridge *b)
{
	switch (b->osm->subn.sm_state) {
	case IB_SMINFO_STATE_MASTER:
		return "master";
	case IB_SMINFO_STATE_STANDBY:
		return "standby";
	case IB_SMINFO_STATE_DISCOVERING:
		return "discovering";
	default:
		return "not-active";
	}
}

static uint64_t generation_loaded(const struct bridge *b)
{
	const struct routes *loaded = b->shared.load_routes ? b->shared.load_routes : b->shared.last_good;

	return loaded ? loaded->generation : 0;
}

#define STATUS(FIELD) \
	FIELD(protocol, number, 2) \
	FIELD(plugin_version, text, SAR_PLUGIN_VERSION) \
	FIELD(opensm_version, text, b->osm->osm_version) \
	FIELD(pid, number, (uintmax_t)getpid()) \
	FIELD(sm_state, text, sm_state(b)) \
	FIELD(state, text, state_name(b)) \
	FIELD(last_error, text, b->shared.last_error.text) \
	FIELD(engine_in_force, text, b->shared.routed ? b->shared.engine_in_force : "none") \
	FIELD(routes_engine, text, b->shared.routes_engine) \
	FIELD(generation_in_force, number, b->shared.generation_in_force) \
	FIELD(generation_loaded, number, generation_loaded(b)) \
	FIELD(lmc, number, b->osm->subn.opt.lmc) \
	FIELD(switches, number, b->shared.switches) \
	FIELD(hca_ports, number, b->shared.hca_ports) \
	FIELD(lanes, number, b->shared.lanes) \
	FIELD(amendments, number, b->shared.amendments) \
	FIELD(amended_entries, number, b->shared.amended_entries) \
	FIELD(repair_drops, truth, b->shared.repair_drops) \
	FIELD(repair_ms, real, b->shared.repair_milliseconds) \
	FIELD(repairs_refused, number, b->shared.repairs_refused) \
	FIELD(listening, number, b->shared.listening) \
	FIELD(repair_calls, number, b->shared.calls) \
	FIELD(repair_calls_answered, number, b->shared.calls_answered) \
	FIELD(unknown_terminals, number, b->shared.unknown) \
	FIELD(vanished_terminals, number, b->shared.vanished) \
	FIELD(unconfirmed_switches, number, b->shared.unconfirmed) \
	FIELD(unconfirmed_lft_blocks, number, b->shared.unconfirmed_blocks) \
	FIELD(unconfirmed_sl2vl_ports, number, b->shared.unconfirmed_ports) \
	FIELD(unconfirmed_sl2vl_tables, number, b->shared.unconfirmed_tables) \
	FIELD(sl2vl_tables_sent, number, atomic_load(&b->sl2vl_tables)) \
	FIELD(head_of_queue_seconds, real, tables_head_of_queue(&b->osm->subn.opt)) \
	FIELD(heavy_sweeps, number, atomic_load(&b->heavy_sweeps)) \
	FIELD(topology_changes, number, b->shared.topology_changes) \
	FIELD(routings, number, b->shared.routings) \
	FIELD(lft_blocks_confirmed, number, atomic_load(&b->lft_blocks)) \
	FIELD(last_build_unix, number, (uintmax_t)b->shared.built_at)

void status_answer(struct bridge *b, char *json, size_t room)
{
	struct json to = {.text = json, .room = room};

#define FIELD(name, type, value) json_##type(&to, #name, value);
	STATUS(FIELD)
#undef FIELD
	json_end(&to);
}
