/*
 * The plugin's entry point: with `event_plugin_name sarbridge` OpenSM loads libsarbridge.so and looks up the symbol at the
 * end of this file. OpenSM creates plugins before it sets up its routing engines, so `routing_engine sar,…` may name an
 * engine that a plugin provides.
 *
 * If the plugin cannot work, create() logs the reason and returns NULL: OpenSM then logs ERR 1000 and goes on with the
 * other engines. In that case nothing of the plugin may stay behind.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "bridge.h"

#include <opensm/osm_version.h>

#ifndef SAR_FOR_OPENSM /* the tests build a plugin for an OpenSM that does not exist */
#define SAR_FOR_OPENSM OSM_VERSION
#endif

/*
 * The layout of OpenSM's structures depends on how OpenSM was built. The pointers compared here are far apart in them: if
 * each has the right value, then the fields between them are at the right offsets, too.
 */
static bool layout_is_ours(const osm_opensm_t *osm)
{
	return !strcmp(osm->osm_version, OSM_VERSION) && osm->subn.p_osm == osm &&
	       osm->sm.p_subn == &osm->subn && osm->sm.p_log == &osm->log &&
	       osm->sm.p_lock == &osm->lock && osm->sa.p_subn == &osm->subn &&
	       osm->sm.ucast_mgr.p_subn == &osm->subn && !osm->routing_engine_used;
}

static void delete(void *context)
{
	struct bridge *b = context;

	pthread_mutex_lock(&b->shared.lock);
	b->shared.stopping = true;
	pthread_cond_broadcast(&b->shared.changed);
	pthread_mutex_unlock(&b->shared.lock);
	server_close(b);
	sigusr2_stop();
	install_free(b->routing.next);
	install_free(b->routing.in_force);
	known_free(&b->tables.known);
	routes_drop(b->shared.load_routes);
	routes_drop(b->shared.last_good);
	pthread_cond_destroy(&b->shared.changed);
	pthread_mutex_destroy(&b->tables.lock);
	pthread_mutex_destroy(&b->shared.lock);
	free(b);
}

static bool start(struct bridge *b, struct reason *why)
{
	if (b->osm->subn.opt.use_ucast_cache)
		REFUSE("with use_ucast_cache OpenSM patches old tables after a change instead of "
			    "asking the routing engine: set it FALSE in opensm.conf");
	return options_parse(&b->options, b->osm->subn.opt.event_plugin_options, why) &&
	       sigusr2_start(why) && server_open(b, why) && engine_register(b, why);
}

/*
 * The position of OpenSM's log in the structure is uncertain, too, so this goes to the system's log, and to stderr, which a
 * daemon has closed. The version is the first field, and OpenSM has just compared it with ours.
 */
static void report_other_build(const osm_opensm_t *osm)
{
	static const char text[] = "sarbridge: not loaded: it was built with the headers of " OSM_VERSION
				   ", and the running %s has other fields; build it again with the headers "
				   "of the running one\n";

	fprintf(stderr, text, osm->osm_version);
	syslog(LOG_DAEMON | LOG_ERR, text, osm->osm_version);
}

static void *create(struct osm_opensm *osm)
{
	struct bridge *b;
	struct reason why = {.text = ""};
	pthread_condattr_t clock;

	if (!layout_is_ours(osm)) {
		report_other_build(osm);
		return NULL;
	}
	b = calloc(1, sizeof(*b));
	if (!b)
		return NULL;
	b->osm = osm;
	b->shared.take_file = true;
	pthread_mutex_init(&b->shared.lock, NULL);
	pthread_mutex_init(&b->tables.lock, NULL);
	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_cond_init(&b->shared.changed, &clock);
	pthread_condattr_destroy(&clock);
	if (!start(b, &why)) {
		BRIDGE_LOG(b, OSM_LOG_ERROR, "not loaded: %s\n", why.text);
		delete(b);
		return NULL;
	}
	BRIDGE_LOG(b, OSM_LOG_INFO, "version %s, routes from %s, status on %s\n",
		   SAR_PLUGIN_VERSION, b->options.routes_path, b->options.socket_path);
	return b;
}

__attribute__((visibility("default"))) osm_event_plugin_t osm_event_plugin = {
	.osm_version = SAR_FOR_OPENSM,
	.create = create,
	.delete = delete,
	.report = events_report,
};
