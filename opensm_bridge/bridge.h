/*
 * The state of the plugin, and the functions that its files call of each other.
 *
 * There are three locks. OpenSM holds its own (`osm->lock`) around every call of the routing engine, so callbacks never
 * take it; only notices.c, dump.c and fabric.c do, in threads of the socket; a routing that waits for the agent lends it to the
 * last two (agent_call.c). `tables.lock` guards the known contents of the
 * switches' tables. `shared.lock` guards what threads of the socket and of OpenSM share; it is held only briefly, so that
 * `status` is answered at once. The order: OpenSM's lock first, then `tables.lock`, then `shared.lock`. The fields of `struct
 * bridge` are grouped by the lock that guards them.
 */
#pragma once
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <time.h>

/* This must come first: it decides the layout of all of OpenSM's structures. */
#include <opensm/osm_config.h>

#include <iba/ib_types.h>
#include <opensm/osm_opensm.h>

#include "follow.h"
#include "known.h"
#include "live.h"
#include "options.h"
#include "own.h"
#include "routes_file.h"

#define SAR_ENGINE "sar"
#define SAR_PLUGIN_VERSION SAR_VERSION /* c.mk: of sar_agent/__init__.py */

struct install; /* install.c */
struct server;	/* socket_server.c */

enum phase { IDLE, SWEEPING, ROUTING }; /* SWEEPING and ROUTING: one has begun and is not over yet */

struct bridge {
	osm_opensm_t *osm;
	struct options options;
	struct server *server;
	atomic_ulong lft_blocks, heavy_sweeps;
	atomic_ulong sl2vl_tables; /* sent to switches in routings of this engine */

	/* Used by OpenSM's sweep thread only, or with osm->lock held. */
	struct {
		struct install *next;	  /* build_lid_matrices chose it for build_tables, which OpenSM calls next */
		struct install *in_force; /* what this engine installed last */
		uint64_t fingerprint;	  /* of the topology at the last routing */
		bool primed;		  /* the heavy sweep after the start has been requested */
		bool was_settled;	  /* at the last routing: see follow.h */
		bool taken_over;	  /* the sweep that is under way is the first as master */
		bool engine_is_set_up;
		osm_physp_t *unmarked; /* of lanes.c, within one series of calls from OpenSM */
		uint8_t unmarked_in;
	} routing;

	/* Used by tables.c only, which the others call with `lock` held. */
	struct {
		pthread_mutex_t lock;
		struct known known;
		char known_engine[32];
		uint64_t known_generation, routings;
		bool looked;	      /* tables_look() has run since the last routing began */
		bool expected;	      /* at the next routing, OpenSM's copies are what the switches have answered (read_back.c) */
		uint32_t longest;     /* hops of the longest route that was in force so far; 0: unknown */
		double older_gone_at; /* seconds on CLOCK_MONOTONIC: when no packets of older tables are left */
	} tables;

	/* What threads of the socket and of OpenSM share. */
	struct {
		pthread_mutex_t lock;
		pthread_cond_t changed; /* on CLOCK_MONOTONIC */

		/* Loads, by number: the last one requested; the last one that a routing has seen; the last one built and sent. */
		uint64_t asked, building, built;
		struct routes *load_routes; /* the routes of a load, until a routing tries them */
		char proved_from[17];	    /* digest of the tables that the load was proved from, or "any" */
		struct reason load_problem; /* why the last load that was tried was refused */
		bool loading;

		/* What was in force before, and routes.sar. */
		struct routes *last_good;   /* the routes that were in force last */
		uint64_t highest;	    /* the highest generation that this process has had in force */
		bool take_file;		    /* read routes.sar at the next routing: another subnet manager may have been the master */
		struct reason file_problem; /* why routes.sar was refused */
		struct reason last_error;   /* why the plugin's routes, or a repair of them, are not in force */

		/* The progress of OpenSM (state.c). */
		enum phase phase;
		bool stopping, routed, lanes_asked;
		uint64_t topology_changes, routings;
		time_t built_at;

		/* Calls to the agent (agent_call.c). */
		bool calling, call_declined;	/* a routing waits for the agent; the agent has no routes for it */
		double call_begun, call_ends, heard_at; /* seconds on CLOCK_MONOTONIC; when a client listened last */
		unsigned calls, calls_answered; /* since OpenSM started */
		unsigned listening;		/* clients that wait for a call */
		unsigned borrowers;		/* requests that read OpenSM's structures under the lock of the routing that waits */

		/* What is in force, and its repairs. */
		char engine_in_force[32], routes_engine[ROUTES_ENGINE_SIZE];
		uint64_t generation_in_force;
		uint32_t switches, hca_ports, lanes, unknown, vanished;
		uint32_t unconfirmed, unconfirmed_blocks, unconfirmed_ports, unconfirmed_tables;
		unsigned amendments; /* repairs of the routes in force since they were loaded */
		uint32_t amended_entries;
		bool repair_drops; /* packets of a live host are dropped */
		double repair_milliseconds;
		unsigned repairs_refused; /* since OpenSM started: repairs that did not hold when they were verified */
		double follow_at; /* seconds on CLOCK_MONOTONIC: when the routing that a repair needs is requested again; 0: none is */
	} shared;
};

#define MORE_SIZE 128
/* Loops over the switches and the ports that OpenSM knows, by GUIDs in network byte order. */
#define EACH_SWITCH(sw, subn) EACH_ITEM(osm_switch_t, sw, &(subn)->sw_guid_tbl)
#define EACH_PORT(port, subn) EACH_ITEM(osm_port_t, port, &(subn)->port_guid_tbl)
#define EACH_ITEM(type, item, map) \
	for (type *item = (type *)cl_qmap_head(map); &item->map_item != cl_qmap_end(map); \
	     item = (type *)cl_qmap_next(&item->map_item))
#define BRIDGE_LOG(bridge, level, ...) osm_log(&(bridge)->osm->log, level, "sarbridge: " __VA_ARGS__)

/* live_osm.c: reads the fabric from OpenSM; `sw` receives OpenSM's switches in the order of `live`. */
bool live_from_osm(struct live *live, osm_switch_t ***sw, osm_opensm_t *osm, struct reason *why);

/* plans.c: chooses the routes to install. */
/* Reads the file of a load; NULL and `why` unless it is valid and holds this generation (0: any). */
struct routes *plans_read_next(struct bridge *b, uint64_t generation, struct reason *why);
struct install *plans_choose(struct bridge *b);

/* install.c */
#define UNICAST_LIDS 0xc000
struct lid_place {
	uint32_t row, column;
	uint8_t offset;
	bool known;
};
struct install {
	struct live live;
	osm_switch_t **sw; /* in the order of `live` */
	struct tables tables;
	struct lid_place place[UNICAST_LIDS]; /* for service levels, if the routes have any */
};
void install_tables(struct install *i);
/* OpenSM builds its multicast trees from the hop count over every port of every switch to every switch. These are the numbers of
 * its own step, which takes 4.5 s at 1,620 switches, after every install. */
void install_hops(const struct install *i);
/* Forgets the fabric and the entries: OpenSM has them now, and its switches are valid until its next discovery only. */
void install_forget_osm(struct install *i);
void install_free(struct install *i);

/* lanes.c: service levels and virtual lanes of the routes in force. */
uint8_t lanes_path_sl(void *bridge, uint8_t hint, const ib_net16_t slid, const ib_net16_t dlid);
void lanes_sl2vl(void *bridge, osm_physp_t *port, uint8_t in, uint8_t out, ib_slvl_table_t *table);
void lanes_vlarb(void *bridge, osm_physp_t *port, uint8_t number, ib_vl_arb_table_t *block,
		 unsigned length, unsigned block_number);

bool lanes_are_unanswered(const ib_slvl_table_t *table);
struct lanes_count {
	uint32_t ports, tables;
};
struct lanes_count lanes_count_unconfirmed(const struct bridge *b);
uint64_t lanes_digest(const struct bridge *b, uint64_t hash);

/* tables.c: the known contents of the switches' tables. The caller holds `tables.lock`, and has called tables_look(). */
enum look { LOOK_SWEEP, LOOK_DISCOVERED, LOOK_ROUTING, LOOK_DONE, LOOK_DUMP };
void tables_look(struct bridge *b, enum look when);
void tables_forget(struct bridge *b);
/* The next routing finds what another subnet manager has installed in OpenSM's copies. */
void tables_expect(struct bridge *b);
/* What may be in force in these switches; NULL if nothing is known of any. */
const struct known *tables_known(struct bridge *b, const struct live *live);
/* Where the routes of each LID end, for the next routing. */
void tables_note_ends(struct bridge *b, const struct install *i);
/* The longest time that a packet may wait at the head of a queue, in seconds; -1: no limit. */
double tables_head_of_queue(const osm_subn_opt_t *options);
uint64_t tables_digest(struct bridge *b, const struct live *live);

/* read_back.c: after discovery. Asks the switches for their tables if this OpenSM is master again. */
void read_back(struct bridge *b);

/* state.c: the progress of OpenSM. The caller holds `shared.lock`. */
const char *state_name(struct bridge *b);
bool state_is_master(const struct bridge *b);
bool state_under_way(struct bridge *b);
void state_lost_master(struct bridge *b);
/* Waits for `changed`, but not for longer. */
void state_wait(struct bridge *b, long milliseconds);
/* Has OpenSM route again. */
void state_request_routing(struct bridge *b);

/* engine.c */
bool engine_register(struct bridge *b, struct reason *why);

/* events.c: OpenSM's event reports. */
void events_report(void *bridge, osm_epi_event_id_t event, void *data);
/* To be called every second: requests the routing that a repair needs again if OpenSM has ignored the request. */
void events_follow(struct bridge *b);

/* reload.c: has OpenSM install routes.next, and waits for the result. `generation` 0: whichever the file has. */
bool reload(struct bridge *b, uint64_t generation, const char *proved_from, struct reason *why);

/* agent_call.c: a routing that waits for the agent's routes. These are for OpenSM's thread, in this order: */
bool agent_call_begin(struct bridge *b, struct reason *why);
/* The routes of a load, and the digest that they were proved from; NULL when the wait is over. */
struct routes *agent_call_wait(struct bridge *b, char *proved_from, size_t room);
void agent_call_refuse(struct bridge *b, const struct reason *load);
/* Returns the seconds since the begin; `declined`: the agent had no routes. */
double agent_call_end(struct bridge *b, bool *declined);
/* For threads of the socket. A client that listens must leave. */
#define MOST_LISTENING 2 /* threads of the socket */
bool agent_call_listen(struct bridge *b);
void agent_call_leave(struct bridge *b);
/* The number of the call that is under way; 0 without a call, and if the call is `answered`. */
unsigned agent_call_number(struct bridge *b, unsigned answered);
bool agent_call_decline(struct bridge *b, unsigned number);
/* To read OpenSM's structures: with its lock, shared, or lent by a routing that waits. BUSY: an engine computes, for minutes maybe. */
enum held { BUSY, HELD, LENT };
enum held osm_try_lock(struct bridge *b);
void osm_unlock(struct bridge *b, enum held held);

/* notices.c: sends a notice to the subscribers of five-phase updates; not to be called from a thread of OpenSM's. */
struct notice;
bool notice_raise(struct bridge *b, const struct notice *notice, unsigned *subscribed, struct reason *why);

/* Writers of files for the agent. `more` receives what the answer says besides the path: members of a JSON object. */
typedef bool write_for_agent(struct bridge *b, char more[MORE_SIZE], struct reason *why);
write_for_agent dump_in_force;	/* dump.c: the tables in force */
write_for_agent fabric_write;	/* fabric.c: the discovered fabric */

/* socket_server.c: the plugin's threads. */
bool server_open(struct bridge *b, struct reason *why);
void server_close(struct bridge *b);

/* sigusr2.c: sigusr2_take() tells one thread that the signal has come. */
bool sigusr2_start(struct reason *why);
bool sigusr2_take(void);
void sigusr2_stop(void); /* after server_close() */

/* status.c: the answer to `status`, one JSON object. The caller holds `shared.lock`. */
void status_answer(struct bridge *b, char *json, size_t room);

/* requests.c: answers one request line with one line of JSON. */
void request_answer(struct bridge *b, const char *request, char *json, size_t room);
