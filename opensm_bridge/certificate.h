/*
 * The certificate of a routes file: a number per channel and lane, which rises from channel to channel along every path of
 * a packet between hosts. So no such path has a loop, and no credit loop can form: a packet that holds a channel waits only
 * for channels with larger numbers. FORMAT.md says what is covered.
 */
#ifndef SAR_CERTIFICATE_H
#define SAR_CERTIFICATE_H
#include <stdbool.h>

#include "routes_file.h"

struct certificate {
	const struct routes *routes;
	uint8_t *sends;	 /* [switches] 1: the file has hosts there, or its proof covers unknown ones */
	const uint32_t *far; /* [switches][wide] those of the file; or those of live cables, and packets to other ports are dropped */
	uint16_t *begin; /* [switches][wide] lanes hop by hop: those in which packets of hosts leave by a port; else NULL */
};

/* For a file that has numbers; false without memory. */
bool certificate_make(struct certificate *c, const struct routes *r);
void certificate_free(struct certificate *c);

/* Checks all paths of the file in one pass over its entries. `before`: routes whose certificate holds, or NULL; where they
 * differ in forwarding entries and far ends only, only the columns that these concern are checked. */
bool certificate_holds(const struct certificate *c, const struct routes *before, struct reason *why);

/* Whether packets of hosts are sent to this column: to a terminal, or to unknown hosts at a switch. */
static inline bool certificate_covers(const struct routes *r, uint32_t column)
{
	return column < r->terminals || r->senders[column - r->terminals];
}

/* The switch at which the paths of a column end. */
static inline uint32_t routes_end(const struct routes *r, uint32_t column)
{
	return column < r->terminals ? r->terminal_leaf[column] : column - r->terminals;
}

/* The set of lanes in which hosts at switch `row` send to a column if their packets leave by `port`. */
static inline unsigned certificate_begin(const struct certificate *c, unsigned offset, uint32_t row, uint32_t column,
					 unsigned port)
{
	const struct routes *r = c->routes;
	unsigned lane = 0;

	if (!c->sends[row])
		return 0;
	if (c->begin)
		return c->begin[(size_t)row * r->wide + port];
	if (r->service_levels)
		lane = r->sl_to_vl[routes_row(r, r->service_levels, offset, row)[column]];
	return lane < r->lanes ? 1u << lane : 0; /* packets of a dropped level go nowhere */
}

/* The lane in which a packet that came in `lane` by port `in` leaves switch `row` by `port`. */
static inline unsigned certificate_lane(const struct routes *r, uint32_t row, unsigned in, unsigned port,
					unsigned lane)
{
	return r->hop_lanes ? r->hop_lanes[((size_t)row * r->wide + in) * r->wide + port] : lane;
}

#endif
