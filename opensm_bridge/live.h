/*
 * The live fabric as plain arrays, without OpenSM's types, so that the checks that decide whether routes may be installed
 * can be tested without OpenSM. live_osm.c fills them in.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NO_PEER UINT32_MAX

struct live_switch {
	uint64_t guid; /* in host byte order, like all GUIDs and LIDs here */
	const char *name;
	uint16_t lid_low, lid_high;
	uint8_t ports;	     /* highest port number */
	uint32_t first_port; /* peer[first_port + port] is the switch behind a port, or NO_PEER */
};

struct live_terminal {
	uint64_t guid;
	uint32_t leaf;
	uint8_t leaf_port; /* the port of the leaf switch to which it is connected */
	uint16_t lid_low, lid_high;
};

struct live {
	uint32_t switches, terminals;
	struct live_switch *sw;	   /* ascending GUIDs */
	struct live_terminal *end; /* any order */
	uint32_t *peer;
	uint8_t *peer_port;   /* indexed like `peer`: the port of that switch */
	uint8_t *fresh; /* the same; 1: the cable carries no packets before this sweep has sent the tables. May be NULL */
	unsigned lids_per_port; /* 2^LMC */
	unsigned data_lanes;	/* how many every link between switches can carry */
	bool sl2vl;		/* every switch has SL-to-VL tables */
	bool qos;		/* OpenSM programs SL-to-VL tables */
};

/* Where packets go, by a number below live_destinations(): first the switches themselves, then hosts. */
struct live_destination {
	uint32_t leaf; /* the switch where the route ends */
	unsigned low, high; /* LIDs; 0: it has none */
	uint64_t guid;
	const struct live_terminal *host; /* NULL: the switch itself */
};

static inline uint32_t live_destinations(const struct live *live)
{
	return live->switches + live->terminals;
}

static inline struct live_destination live_destination(const struct live *live, uint32_t d)
{
	const struct live_terminal *t = d < live->switches ? NULL : &live->end[d - live->switches];
	const struct live_switch *sw = &live->sw[t ? t->leaf : d];

	if (t)
		return (struct live_destination){t->leaf, t->lid_low, t->lid_high, t->guid, t};
	return (struct live_destination){d, sw->lid_low, sw->lid_high, sw->guid, NULL};
}

/* A hash of the topology, without LIDs. */
uint64_t live_fingerprint(const struct live *live);
void live_free(struct live *live);
