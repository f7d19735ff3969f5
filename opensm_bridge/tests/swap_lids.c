/*
 * For a live test: a second plugin that makes OpenSM assign LIDs again within one sweep. When a heavy sweep begins and a
 * file `swap` with two port GUIDs is in OpenSM's working directory, their LIDs are swapped in OpenSM's guid2lid table, the
 * file is removed, and the sweep waits while there is a file `gate`.
 */
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include <opensm/osm_config.h>

#include <iba/ib_types.h>
#include <opensm/osm_db_pack.h>
#include <opensm/osm_opensm.h>
#include <opensm/osm_version.h>

static void *create(struct osm_opensm *osm)
{
	return osm;
}

static void delete(void *context)
{
	(void)context;
}

static void swap(osm_db_domain_t *table, uint64_t first, uint64_t second)
{
	uint16_t low[2], high[2];

	if (osm_db_guid2lid_get(table, first, &low[0], &high[0]) || osm_db_guid2lid_get(table, second, &low[1], &high[1]))
		return;
	osm_db_guid2lid_set(table, first, low[1], high[1]);
	osm_db_guid2lid_set(table, second, low[0], high[0]);
}

static void report(void *context, osm_epi_event_id_t event, void *data)
{
	osm_opensm_t *osm = context;
	uint64_t first, second;
	FILE *file;

	(void)data;
	if (event != OSM_EVENT_ID_HEAVY_SWEEP_START || !(file = fopen("swap", "r")))
		return;
	if (fscanf(file, "%" SCNx64 " %" SCNx64, &first, &second) == 2)
		swap(osm->sm.lid_mgr.p_g2l, first, second);
	fclose(file);
	unlink("swap");
	while (!access("gate", F_OK))
		usleep(10000);
}

__attribute__((visibility("default"))) osm_event_plugin_t osm_event_plugin = {
	.osm_version = OSM_VERSION,
	.create = create,
	.delete = delete,
	.report = report,
};
