/*
 * As much of OpenSM as the plugin's own engine and events need: its switches, its routings and its clock, as 3.3.23 handles them
 * (tables.c says what it does). The fabric is the caller's: live_from_osm() is not that of live_osm.c.
 */
#pragma once
#include "../bridge.h"

#define FAKE_MOST 64 /* switches */
#define FAKE_LIDS 1024

struct fake_osm {
	osm_opensm_t osm;
	struct bridge bridge;
	osm_routing_engine_t engine, other;
	const char *answer; /* the file that the agent loads when it is called */
	const char *copied; /* the file that it puts in the place of routes.sar then; neither: no agent listens */
	bool silent[FAKE_MOST]; /* [place in `sw`] it does not answer */
	osm_switch_t *sw[FAKE_MOST]; /* ascending GUIDs */
	uint32_t switches;
};

/* OpenSM with the plugin begins, and is master. It has the file for its first routing. */
struct fake_osm *fake_begin(const char *routes_path);
void fake_end(struct fake_osm *f);
/* Another subnet manager is master for a while, then this one again. */
void fake_lose_master(struct fake_osm *f);
/* The switches that a sweep has found; those that are `silent` do not answer. What OpenSM has of those that are not among them is lost. */
void fake_discover(struct fake_osm *f, const uint64_t *guids, const uint8_t *ports, const bool *silent, uint32_t switches);
/* [FAKE_LIDS] the table that the switch at this place in `sw` has. */
uint8_t *fake_has(const struct fake_osm *f, uint32_t s);
/* A routing of the plugin's engine, and what is sent; false where the plugin has no routes. */
bool fake_route(struct fake_osm *f);
/* Another engine's: `entry` is [switches][FAKE_LIDS]. */
void fake_route_other(struct fake_osm *f, const uint8_t *entry);
/* Whether the plugin has asked for a routing since the last one. */
bool fake_is_asked(const struct fake_osm *f);
void fake_sleep(double seconds);
