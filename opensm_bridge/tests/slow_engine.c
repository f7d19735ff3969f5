/*
 * For live tests: a second plugin whose routing engine "slow" waits while a file `gate` exists in OpenSM's working
 * directory, and then has OpenSM build min-hop tables under its name. So a test controls what happens while an engine
 * computes.
 */
#include <stdlib.h>
#include <unistd.h>

#include <opensm/osm_config.h>

#include <iba/ib_types.h>
#include <opensm/osm_opensm.h>
#include <opensm/osm_version.h>

static int build_lid_matrices(void *context)
{
	(void)context;
	while (!access("gate", F_OK))
		usleep(10000);
	return 1; /* use OpenSM's own hop counts and tables */
}

static int set_up(struct osm_routing_engine *engine, osm_opensm_t *osm)
{
	(void)osm;
	engine->build_lid_matrices = build_lid_matrices;
	return 0;
}

static void *create(struct osm_opensm *osm)
{
	static const external_routing_engine_module_t module = {.name = "slow", .setup = set_up};

	return osm_register_external_routing_engine(osm, &module, osm) == CL_SUCCESS ? osm : NULL;
}

static void delete(void *context)
{
	(void)context;
}

static void report(void *context, osm_epi_event_id_t event, void *data)
{
	(void)context, (void)event, (void)data;
}

__attribute__((visibility("default"))) osm_event_plugin_t osm_event_plugin = {
	.osm_version = OSM_VERSION,
	.create = create,
	.delete = delete,
	.report = report,
};
