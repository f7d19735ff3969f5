/*
 * What the parts of the plugin share.
 *
 * Three locks. OpenSM's own (`osm->lock`) is held by OpenSM around every call of the routing engine,
 * so a callback never takes it; only notices.c and dump.c do, in the socket's threads. `tables`
 * guards what switches are known to have. `mutex` guards what the socket's threads and OpenSM's
 * threads both touch; it is held for moments only, so that `status` is answered at once. Hence the
 * order: OpenSM's lock first, `tables` inside, `mutex` innermost.
 */
#ifndef SAR_BRIDGE_H
#define SAR_BRIDGE_H
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <time.h>

/* First: it decides the layout of all structures below. */
#include <opensm/osm_config.h>

#include <iba/ib_types.h>
#include <opensm/osm_opensm.h>

#include "fit.h"
#include "known.h"
#include "live.h"
#include "options.h"
#include "routes_file.h"

#define SAR_ENGINE "sar"
#define SAR_PLUGIN_VERSION "0.1.0"

struct install; /* install.c */
struct server;	/* socket_server.c */
struct sigusr2;	/* sigusr2.c */

enum phase { IDLE, SWEEPING, ROUTING }; /* a sweep began; a routing did; it is not over yet */

struct bridge {
	osm_opensm_t *osm;
	struct options options;
	struct server *server;
	struct sigusr2 *sigusr2;

	/* OpenSM's sweep thread alone, or under osm->lock. */
	struct install *next;	  /* chosen by build_lid_matrices for the call that follows it */
	struct install *in_force; /* what our engine installed last */
	uint64_t fingerprint;
	bool primed;	 /* the heavy sweep after the start was asked for */
	bool taken_over; /* in the sweep that is under way */
	bool engine_is_set_up;

	osm_physp_t *unmarked; /* lanes.c, within one run of OpenSM's calls */
	uint8_t unmarked_in;

	atomic_ulong lft_blocks, heavy_sweeps;

	pthread_mutex_t tables;
	/* Below: guarded by `tables`; all of it is tables.c's. */
	struct known known;
	char known_engine[32];
	uint64_t known_generation, tables_routings;
	bool looked; /* since the last routing began */

	pthread_mutex_t mutex;
	pthread_cond_t changed; /* on CLOCK_MONOTONIC */
	/* Below: guarded by `mutex`. */
	struct routes *wanted, *good; /* a load's, until it is tried; last one that was in force */
	char proved_from[17];	      /* what the load was proved from; "any" */
	struct reason load_problem;   /* why the load that was tried last was not taken */
	struct reason file_problem;   /* why routes.sar was not taken */
	struct reason last_error;     /* why the routes that we have are not in force */
	uint64_t asked, building, built; /* loads asked for; seen by the build; built and sent */
	uint64_t highest;		 /* generation that this process has had in force */
	bool take_file;			 /* at the next routing: it is the first as master */
	bool loading, stopping, routed, lanes_asked;
	enum phase phase;
	char engine_in_force[32], routes_engine[ROUTES_ENGINE_SIZE];
	uint64_t generation_in_force;
	uint32_t unknown, vanished, switches, hca_ports, lanes;
	uint32_t unconfirmed, unconfirmed_blocks, unconfirmed_ports;
	uint64_t topology_changes, routings;
	time_t built_at;
};

#define BRIDGE_LOG(bridge, level, ...) osm_log(&(bridge)->osm->log, level, "sarbridge: " __VA_ARGS__)

/* live_osm.c: read OpenSM's picture of the fabric; `sw` gets OpenSM's switches in our order. */
bool live_from_osm(struct live *live, osm_switch_t ***sw, osm_opensm_t *osm, struct reason *why);

/* plans.c: which routes are to be used. */
struct routes *plans_read_next(struct bridge *b, uint64_t wanted, struct reason *why);
struct install *plans_choose(struct bridge *b);

/* install.c */
struct install *install_new(struct live *live, osm_switch_t **sw, struct fit *fit,
			    struct routes *routes);
void install_hops(const struct install *i);
void install_tables(struct install *i);
void install_free(struct install *i);
struct install {
	struct live live;
	osm_switch_t **sw;
	struct fit fit;
	struct routes *routes;
	struct lid_place *place; /* by LID, for service levels; NULL without */
};
struct lid_place {
	uint32_t row, column;
	uint8_t offset;
	bool known;
};

/* lanes.c: service levels and virtual lanes of what is in force. */
uint8_t lanes_path_sl(void *bridge, uint8_t hint, const ib_net16_t slid, const ib_net16_t dlid);
void lanes_sl2vl(void *bridge, osm_physp_t *port, uint8_t in, uint8_t out, ib_slvl_table_t *table);
void lanes_vlarb(void *bridge, osm_physp_t *port, uint8_t number, ib_vl_arb_table_t *block,
		 unsigned length, unsigned block_number);

bool lanes_are_unanswered(const ib_slvl_table_t *table);
uint32_t lanes_count_unconfirmed(const struct bridge *b);
uint64_t lanes_digest(const struct bridge *b, uint64_t hash);

/* tables.c: what switches are known to have. All of it with `tables` held, after a look. */
enum look { LOOK_SWEEP, LOOK_DISCOVERED, LOOK_ROUTING, LOOK_DONE, LOOK_DUMP };
void tables_look(struct bridge *b, enum look when);
void tables_forget(struct bridge *b);
uint64_t tables_digest(struct bridge *b, const struct live *live);
void tables_count(struct bridge *b, uint32_t *switches, uint32_t *blocks);
void tables_entry(struct bridge *b, const osm_switch_t *sw, unsigned lid, uint8_t *sent, uint8_t *had);

/* state.c: how far OpenSM is. All of it with the mutex held. */
const char *state_name(struct bridge *b);
bool state_is_master(const struct bridge *b);
bool state_under_way(struct bridge *b);
void state_lost_master(struct bridge *b);

/* engine.c */
bool engine_register(struct bridge *b, struct reason *why);

/* events.c: what OpenSM reports. */
void events_report(void *bridge, osm_epi_event_id_t event, void *data);

/* reload.c: have OpenSM install routes.next and wait for the truth. `generation` 0: whatever it has. */
bool reload(struct bridge *b, uint64_t generation, const char *proved_from, struct reason *why);

/* notices.c: tell subscribers of the five-phase update; not from a thread of OpenSM's. */
struct notice;
bool notice_raise(struct bridge *b, const struct notice *notice, unsigned *subscribed, struct reason *why);

/* dump.c */
struct dumped {
	uint64_t digest;
	uint32_t unconfirmed_ports;
};
bool dump_in_force(struct bridge *b, struct dumped *dumped, struct reason *why);

/* fabric.c: write what was discovered; tells where, and the digest of what was written. */
bool fabric_write(struct bridge *b, char *path, size_t room, uint64_t *digest, struct reason *why);

/* socket_server.c, sigusr2.c: the threads. */
bool server_open(struct bridge *b, struct reason *why);
void server_close(struct bridge *b);
bool sigusr2_start(struct bridge *b, struct reason *why);
void sigusr2_stop(struct bridge *b);
int thread_start(pthread_t *thread, void *(*run)(void *), void *argument);

/* requests.c: one request line to one line of JSON. */
void request_answer(struct bridge *b, const char *request, char *json, size_t room);

#endif
