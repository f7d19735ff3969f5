/*
 * The last difference that OpenSM's PerfMgr reported for each port, and the file of COUNTERS.md. Without OpenSM's types, so
 * that it can be tested without OpenSM; counters.c fills it in. The memory is bounded: no more than COUNTERS_MOST ports are kept.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "reason.h"

#define COUNTERS_HEADER_SIZE 64
#define COUNTERS_PORT_SIZE 66 /* bytes in the file */
#define COUNTERS_MOST 393216	 /* ports, some 130 bytes each */
#define COUNTERS_FORGET 8	 /* sweeps after which a port that is no longer read is left out */

enum counted_flag {
	COUNTED_DATA = 1,   /* words and packets are a difference over `window` */
	COUNTED_WAITS = 2,  /* so are the waits, over `wait_window` */
	COUNTED_STUCK = 4,  /* a counter of 32 bits stood at its maximum: the words are only the least */
	COUNTED_WIDE = 128, /* not in the file: the counters have more than 32 bits */
};

struct counted_port {
	uint64_t guid; /* of the node */
	uint64_t sent, received, sent_packets, received_packets, waits;
	uint64_t read_at, waits_at;   /* ms of a clock that nobody sets */
	uint32_t total[2];	      /* words sent and received since PerfMgr cleared the counters, if they are of 32 bits */
	uint32_t window, wait_window; /* ms */
	uint32_t sweep;
	uint8_t port, flags;
};

struct port_counters {
	void *ports; /* a tree (tsearch) by node and port */
	uint32_t used;
	uint32_t sweep;	     /* PerfMgr's sweeps, from 1 */
	uint32_t sweep_seconds;
	uint32_t dropped; /* readings for which there was no room */
};

/* Differences since the reading before, and the seconds between the two by PerfMgr's clock of whole seconds. */
struct counted_data {
	uint64_t guid, sent, received, sent_packets, received_packets;
	int64_t seconds;
	uint8_t port;
};

/* `now` in ms. False if there is no room. */
bool counters_add_data(struct port_counters *c, const struct counted_data *data, uint64_t now);
bool counters_add_waits(struct port_counters *c, uint64_t guid, uint8_t port, uint64_t waits, int64_t seconds,
			uint64_t now);
void counters_free(struct port_counters *c);

/* The file's bytes, `*size` of them, to be freed; NULL without memory. `unix_now` in ms. */
uint8_t *counters_image(const struct port_counters *c, uint64_t now, uint64_t unix_now, size_t *size);
