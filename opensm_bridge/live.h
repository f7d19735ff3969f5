/*
 * The live fabric as plain arrays, free of OpenSM's types: so the checks that decide whether
 * routes may be installed are tested without OpenSM. live_osm.c fills it.
 */
#ifndef SAR_LIVE_H
#define SAR_LIVE_H
#include <stdbool.h>
#include <stdint.h>

#define NO_PEER UINT32_MAX

struct live_switch {
	uint64_t guid; /* host byte order, like all GUIDs and LIDs here */
	const char *name;
	uint16_t lid_low, lid_high;
	uint8_t ports;	     /* highest port number */
	uint32_t first_port; /* peer[first_port + port] is the switch behind a port, or NO_PEER */
};

struct live_terminal {
	uint64_t guid;
	uint32_t leaf;
	uint8_t leaf_port; /* the leaf switch's port */
	uint16_t lid_low, lid_high;
};

struct live {
	uint32_t switches, terminals;
	struct live_switch *sw;	   /* ascending GUIDs */
	struct live_terminal *end; /* any order */
	uint32_t *peer;
	uint8_t *peer_port;   /* as `peer`: that switch's port */
	unsigned lids_per_port; /* 2^LMC */
	unsigned data_lanes;	/* that every link between switches can carry */
	bool sl2vl;		/* every switch has SL to VL tables */
	bool qos;		/* OpenSM programs SL to VL tables at all */
};

/* Names what is connected to what; LIDs left out, as they are not part of the topology. */
uint64_t live_fingerprint(const struct live *live);
void live_free(struct live *live);

/* Hop counts from every switch to `target`, 255 for none; `queue` has room for all switches. */
void hops_to(const struct live *live, uint32_t target, uint8_t *hops, uint32_t *queue);

#endif
