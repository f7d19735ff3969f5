/*
 * Checks a certificate in one pass: for each destination, the paths of all senders are followed until they join one that
 * was followed before, so each entry of a table is looked at once per lane. Columns are taken in groups, because those of
 * one group share the cache lines of the tables.
 */
#include "certificate.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define AT_ONCE 64

#define REFUSE(...) return REASON_OF(why, "invalid", __VA_ARGS__), false

/* Hop by hop, the lane depends on the port at which a host is: the ports of known hosts, and where unknown hosts are
 * covered, all ports without a cable to a switch. */
static void begin_at(struct certificate *c, uint32_t s, unsigned in)
{
	const struct routes *r = c->routes;

	for (unsigned port = 1; port <= r->switch_ports[s]; port++)
		c->begin[(size_t)s * r->wide + port] |= (uint16_t)(1u << routes_hop_lane(r, s, in, port));
}

static void begin_hop_by_hop(struct certificate *c)
{
	const struct routes *r = c->routes;

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

bool certificate_make(struct certificate *c, const struct routes *r)
{
	*c = (struct certificate){.routes = r, .far = r->far_ends, .sends = calloc(r->switches, 1)};
	if (r->hop_lanes)
		c->begin = calloc((size_t)r->switches * r->wide, sizeof(*c->begin));
	if (!c->sends || (r->hop_lanes && !c->begin)) {
		certificate_free(c);
		return false;
	}
	memcpy(c->sends, r->senders, r->switches);
	for (uint32_t t = 0; t < r->terminals; t++)
		c->sends[r->terminal_leaf[t]] = 1;
	if (r->hop_lanes)
		begin_hop_by_hop(c);
	return true;
}

void certificate_free(struct certificate *c)
{
	free(c->sends);
	free(c->begin);
	*c = (struct certificate){.routes = NULL};
}

static bool broken(const struct routes *r, uint32_t column, uint32_t s, unsigned port, const char *what, unsigned lane,
		   struct reason *why)
{
	const uint64_t to = column < r->terminals ? r->terminal_guid[column] : r->switch_guid[column - r->terminals];

	REFUSE("the certificate does not hold: on the way to 0x%016" PRIx64 ", the channel of switch 0x%016" PRIx64
	       " by port %u in lane %u %s", to, r->switch_guid[s], port, lane, what);
}

/* Follows packets that begin at switch `s` in `lane` until they meet others; `passed`: the lanes that were followed, by
 * switch. */
static bool rises(const struct certificate *c, const uint8_t *table, uint32_t column, uint32_t s, unsigned lane,
		  uint16_t *passed, struct reason *why)
{
	const struct routes *r = c->routes;
	const uint32_t end = routes_end(r, column);
	const size_t plane = (size_t)r->switches * r->wide;
	uint32_t last = 0;

	while (s != end) {
		const uint8_t port = table[(size_t)s * r->columns + column];
		const size_t at = (size_t)s * r->wide + port;
		uint32_t number, far;

		if (port == ROUTES_NO_ROUTE)
			return true; /* the packet is dropped */
		number = r->numbers[lane * plane + at];
		far = c->far[at];
		if (far == ROUTES_NO_SWITCH && c->far != r->far_ends)
			return true;
		if (far == ROUTES_NO_SWITCH)
			return broken(r, column, s, port, "does not end at a switch", lane, why);
		if (!number)
			return broken(r, column, s, port, "has no number", lane, why);
		if (number <= last)
			return broken(r, column, s, port, "has no larger number than the one before it", lane, why);
		if (passed[s] >> lane & 1)
			return true;
		passed[s] |= (uint16_t)(1u << lane);
		last = number;
		s = far >> 8;
		if (r->hop_lanes && s != end) {
			const uint8_t next = table[(size_t)s * r->columns + column];

			if (next == ROUTES_NO_ROUTE)
				return true;
			lane = certificate_lane(r, s, far & 255, next, lane);
		}
	}
	return true;
}

static bool column_holds(const struct certificate *c, unsigned offset, uint32_t column, const uint32_t *sender,
			 uint32_t senders, uint16_t *passed, struct reason *why)
{
	const struct routes *r = c->routes;
	const uint8_t *table = routes_row(r, r->forwarding, offset, 0);

	memset(passed, 0, r->switches * sizeof(*passed));
	for (uint32_t i = 0; i < senders; i++) {
		const uint32_t s = sender[i];
		const uint8_t port = table[(size_t)s * r->columns + column];
		unsigned lanes;

		if (s == routes_end(r, column) || port == ROUTES_NO_ROUTE)
			continue;
		lanes = certificate_begin(c, offset, s, column, port);
		for (unsigned lane = 0; lanes >> lane; lane++)
			if (lanes >> lane & 1 && !rises(c, table, column, s, lane, passed, why))
				return false;
	}
	return true;
}

#define SAME(array, count) (!memcmp(r->array, before->array, (count) * sizeof(*r->array)))

/* Whether only forwarding entries and far ends may differ: what else a path depends on is the same. */
static bool differs_in_entries(const struct routes *r, const struct routes *before)
{
	const size_t ports = (size_t)r->switches * r->wide;

	return r->lanes == 1 && before->lanes == 1 && before->numbers &&
	       r->offsets == before->offsets && r->switches == before->switches && r->terminals == before->terminals &&
	       r->wide == before->wide && SAME(switch_guid, r->switches) && SAME(terminal_guid, r->terminals) &&
	       SAME(terminal_leaf, r->terminals) && SAME(senders, r->switches) &&
	       SAME(numbers, ports);
}

/* Marks the columns that have other entries at an offset, or whose entries lead elsewhere. */
static void mark_changed(const struct routes *r, const struct routes *before, unsigned offset, bool *changed)
{
	memset(changed, 0, r->columns * sizeof(*changed));
	for (uint32_t s = 0; s < r->switches; s++) {
		const uint8_t *now = routes_row(r, r->forwarding, offset, s);
		const uint8_t *then = routes_row(before, before->forwarding, offset, s);
		const uint32_t *ends = r->far_ends + (size_t)s * r->wide, *old = before->far_ends + (size_t)s * r->wide;

		if (memcmp(ends, old, r->wide * sizeof(*ends)))
			for (uint32_t d = 0; d < r->columns; d++)
				changed[d] = changed[d] || (now[d] < r->wide && ends[now[d]] != old[now[d]]);
		for (uint32_t at = 0; at < r->columns; at += AT_ONCE) {
			const uint32_t end = r->columns - at < AT_ONCE ? r->columns : at + AT_ONCE;

			if (memcmp(now + at, then + at, end - at))
				for (uint32_t d = at; d < end; d++)
					changed[d] = changed[d] || now[d] != then[d];
		}
	}
}

bool certificate_holds(const struct certificate *c, const struct routes *before, struct reason *why)
{
	const struct routes *r = c->routes;
	const bool some = before && differs_in_entries(r, before);
	uint16_t *passed = calloc(r->switches, sizeof(*passed));
	uint32_t *sender = calloc(r->switches, sizeof(*sender)), senders = 0;
	bool *changed = malloc(r->columns * sizeof(*changed));
	bool good = passed && sender && changed;

	if (!good)
		REASON(why, "no memory to check the certificate");
	for (uint32_t s = 0; good && s < r->switches; s++)
		if (c->sends[s])
			sender[senders++] = s;
	for (unsigned o = 0; good && o < r->offsets; o++) {
		memset(changed, 1, r->columns * sizeof(*changed));
		if (some)
			mark_changed(r, before, o, changed);
		for (uint32_t column = 0; good && column < r->columns; column++)
			good = !changed[column] || !certificate_covers(r, column) ||
			       column_holds(c, o, column, sender, senders, passed, why);
	}
	free(changed);
	free(passed);
	free(sender);
	return good;
}
