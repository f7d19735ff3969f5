/* The routes file of FORMAT.md, read into memory and checked completely. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "guid.h"
#include "reason.h"

#define ROUTES_HEADER_SIZE 128
#define ROUTES_ENGINE_SIZE 32
#define ROUTES_NO_ROUTE 255
#define ROUTES_NO_SWITCH UINT32_MAX
#define ROUTES_MAGIC "SARROUTE"
#define ROUTES_VERSION 4
#define ROUTES_LAST_ID 14
#define ROUTES_HOPS 1u /* flags */
#define ROUTES_HAD 2u
#define ROUTES_NUMBERS 4u
#define ROUTES_MOST_LOAD 65536
#define ROUTES_UNKNOWN 254 /* in `had` */
#define ROUTES_DROPPED 15  /* in `sl_to_vl` */

struct routes {
	_Atomic unsigned holders;
	uint64_t generation, made_at;
	uint32_t switches, terminals, columns; /* columns = terminals + switches */
	unsigned offsets, lanes;
	char engine[ROUTES_ENGINE_SIZE];
	unsigned flags, wide; /* wide: the highest port number of all switches, + 1 */
	union {
		const void *section[ROUTES_LAST_ID + 1]; /* in `image`; NULL: it has none of this id. The same by name: */
		struct {
			const void *no_section;
			const uint64_t *switch_guid, *terminal_guid;
			const uint32_t *terminal_leaf;
			const uint8_t *switch_ports;
			const uint8_t *forwarding; /* [offsets][switches][columns] */
			/* For lanes by path; NULL with one lane, and with hop-by-hop lanes. */
			const uint8_t *service_levels; /* [offsets][switches][columns] */
			const uint8_t *sl_to_vl, *fallback_sl;
			const uint8_t *hop_lanes; /* [switches][wide in][wide out], or NULL */
			const uint32_t *far_ends; /* [switches][wide]: switch << 8 | port, or ROUTES_NO_SWITCH */
			const uint8_t *senders;	  /* [switches] 1: the proof covers hosts there that are not in the file */
			const uint8_t *had; /* in dumps only, same shape as `forwarding`: what a switch may have instead */
			/* The certificate (FORMAT.md), and the predicted load of each channel; both are NULL without its flag. */
			const uint32_t *numbers; /* [lanes][switches][wide] */
			const uint32_t *loads;	 /* [switches][wide], <= ROUTES_MOST_LOAD */
		};
	};
	uint8_t *image;
	size_t size;
	struct amendment *amended; /* what the plugin has changed (repair.h); NULL in routes as they were read */
};

/* Reads and checks a file; the caller holds the one reference. NULL and `why` if it is invalid. */
struct routes *routes_read(const char *path, struct reason *why);
/* The same from memory; takes ownership of `image` (from malloc), and frees it on failure. */
struct routes *routes_from_image(uint8_t *image, size_t size, struct reason *why);
struct routes *routes_hold(struct routes *routes);
void routes_drop(struct routes *routes); /* may be NULL */

/* What the plugin's repairs have made of a plan. */
struct amendment {
	struct routes *plan; /* the routes as they were read */
	unsigned repairs;    /* since the plan was read */
	uint32_t entries;    /* changed by the last repair */
	uint32_t later;	     /* entries that the next repair may set, once this one is confirmed on all switches */
	bool dropping;	     /* until then, packets of some hosts that have no way now are still dropped */
	double milliseconds; /* that the last repair took */
};

static inline const uint8_t *routes_row(const struct routes *r, const uint8_t *table,
					unsigned offset, uint32_t row)
{
	return table + ((size_t)offset * r->switches + row) * r->columns;
}

/* With hop-by-hop lanes: the lane of packets that enter switch `row` by port `in` and leave by `out`. */
static inline uint8_t routes_hop_lane(const struct routes *r, uint32_t row, unsigned in,
				      unsigned out)
{
	return in < r->wide && out < r->wide ? r->hop_lanes[((size_t)row * r->wide + in) * r->wide + out]
					     : 0;
}

/* The switch at which the paths of a column end. */
static inline uint32_t routes_end(const struct routes *r, uint32_t column)
{
	return column < r->terminals ? r->terminal_leaf[column] : column - r->terminals;
}

/* Whether packets of hosts are sent to this column: to a terminal, or to unknown hosts at a switch. */
static inline bool routes_covers(const struct routes *r, uint32_t column)
{
	return column < r->terminals || r->senders[column - r->terminals];
}

/* Sets `sends` of each row to 1 where the file has hosts, or its proof covers unknown ones; else to 0. */
void routes_senders(const struct routes *r, uint8_t *sends);

/* The row of a switch; `switches` if there is none. */
static inline uint32_t routes_switch(const struct routes *r, uint64_t guid)
{
	return guid_index(r->switch_guid, r->switches, guid);
}
