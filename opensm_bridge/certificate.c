/*
 * Checks a certificate in one pass: for each destination, the paths of all senders are followed until they join one that
 * was followed before, so each entry of a table is looked at once per lane.
 */
#include "certificate.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define INVALID(...) return REASON_OF(why, "invalid", __VA_ARGS__), false

struct check {
	const struct routes *r;
	uint8_t *sends;	  /* [switches] as routes_senders() sets them */
	uint16_t *begin;  /* [switches][wide] lanes hop by hop: those in which packets of hosts leave by a port; else NULL */
	uint16_t *passed; /* [switches] the lanes in which packets to the column were followed */
};

/* Hop by hop, the lane depends on the port at which a host is: the ports of known hosts, and where unknown hosts are
 * covered, all ports without a cable to a switch. */
static void begin_at(struct check *c, uint32_t s, unsigned in)
{
	const struct routes *r = c->r;

	for (unsigned port = 1; port <= r->switch_ports[s]; port++)
		c->begin[(size_t)s * r->wide + port] |= (uint16_t)(1u << routes_hop_lane(r, s, in, port));
}

static void begin_hop_by_hop(struct check *c)
{
	const struct routes *r = c->r;

	for (uint32_t t = 0; t < r->terminals; t++)
		for (unsigned o = 0; o < r->offsets; o++) {
			const uint32_t leaf = r->terminal_leaf[t];
			const uint8_t port = routes_row(r, r->forwarding, o, leaf)[t];

			if (port <= r->switch_ports[leaf])
				begin_at(c, leaf, port);
		}
	for (uint32_t s = 0; s < r->switches; s++)
		for (unsigned in = 1; r->senders[s] && in <= r->switch_ports[s]; in++)
			if (r->far_ends[(size_t)s * r->wide + in] == ROUTES_NO_SWITCH)
				begin_at(c, s, in);
}

/* The set of lanes in which hosts at switch `row` send to a column if their packets leave by `port`. */
static unsigned lanes_at(const struct check *c, unsigned offset, uint32_t row, uint32_t column, unsigned port)
{
	const struct routes *r = c->r;
	unsigned lane = 0;

	if (c->begin)
		return c->begin[(size_t)row * r->wide + port];
	if (r->service_levels)
		lane = r->sl_to_vl[routes_row(r, r->service_levels, offset, row)[column]];
	return lane < r->lanes ? 1u << lane : 0; /* packets of a dropped level go nowhere */
}

static bool broken(const struct routes *r, uint32_t column, uint32_t s, unsigned port, const char *what, unsigned lane,
		   struct reason *why)
{
	const uint64_t to = column < r->terminals ? r->terminal_guid[column] : r->switch_guid[column - r->terminals];

	INVALID("is invalid: the certificate does not hold: on the way to 0x%016" PRIx64 ", the channel of switch 0x%016" PRIx64
	       " by port %u in lane %u %s", to, r->switch_guid[s], port, lane, what);
}

/* Follows packets that begin at switch `s` in `lane` until they meet others. */
static bool rises(struct check *c, const uint8_t *table, uint32_t column, uint32_t s, unsigned lane, struct reason *why)
{
	const struct routes *r = c->r;
	const uint32_t end = routes_end(r, column);
	uint32_t last = 0;

	while (s != end) {
		const uint8_t port = table[(size_t)s * r->columns + column];
		uint32_t number, far;

		if (port == ROUTES_NO_ROUTE)
			return true; /* the packet is dropped */
		number = r->numbers[((size_t)lane * r->switches + s) * r->wide + port];
		far = r->far_ends[(size_t)s * r->wide + port];
		if (far == ROUTES_NO_SWITCH)
			return broken(r, column, s, port, "does not end at a switch", lane, why);
		if (!number)
			return broken(r, column, s, port, "has no number", lane, why);
		if (number <= last)
			return broken(r, column, s, port, "has no larger number than the one before it", lane, why);
		if (c->passed[s] >> lane & 1)
			return true;
		c->passed[s] |= (uint16_t)(1u << lane);
		last = number;
		s = far >> 8;
		if (r->hop_lanes && s != end) {
			const uint8_t next = table[(size_t)s * r->columns + column];

			if (next == ROUTES_NO_ROUTE)
				return true;
			lane = routes_hop_lane(r, s, far & 255, next);
		}
	}
	return true;
}

static bool column_holds(struct check *c, unsigned offset, uint32_t column, struct reason *why)
{
	const struct routes *r = c->r;
	const uint8_t *table = routes_row(r, r->forwarding, offset, 0);

	memset(c->passed, 0, r->switches * sizeof(*c->passed));
	for (uint32_t s = 0; s < r->switches; s++) {
		const uint8_t port = table[(size_t)s * r->columns + column];
		unsigned lanes = 0;

		if (c->sends[s] && s != routes_end(r, column) && port != ROUTES_NO_ROUTE)
			lanes = lanes_at(c, offset, s, column, port);
		for (unsigned lane = 0; lanes >> lane; lane++)
			if (lanes >> lane & 1 && !rises(c, table, column, s, lane, why))
				return false;
	}
	return true;
}

bool certificate_holds(const struct routes *r, struct reason *why)
{
	struct check c = {.r = r, .sends = calloc(r->switches, 1), .passed = calloc(r->switches, sizeof(*c.passed))};
	bool good;

	if (r->hop_lanes)
		c.begin = calloc((size_t)r->switches * r->wide, sizeof(*c.begin));
	good = c.sends && c.passed && (c.begin || !r->hop_lanes);
	if (!good)
		REASON(why, "no memory to check the certificate");
	else
		routes_senders(r, c.sends);
	if (good && r->hop_lanes)
		begin_hop_by_hop(&c);
	for (unsigned o = 0; good && o < r->offsets; o++)
		for (uint32_t column = 0; good && column < r->columns; column++)
			good = !routes_covers(r, column) || column_holds(&c, o, column, why);
	free(c.sends);
	free(c.begin);
	free(c.passed);
	return good;
}
