/*
 * Decides whether routes that were computed for the fabric of some minutes ago may still be installed in the live fabric.
 *
 * Nodes come and go daily, and the reboot of one node must not hand a whole fabric over to another engine:
 *  - A terminal of the file that is gone is skipped.
 *  - A live terminal that is not in the file, or is there at another port, is routed like the own LID of its leaf switch,
 *    with the leaf's port to it as the last hop. Packets to it then use the channels of packets to that LID, and packets
 *    from it enter at that leaf. Either may close a credit loop if the agent's proof had no packets to that LID, or no
 *    sender at that switch (a spine, or a leaf whose hosts were all down). So the file says for each switch whether its
 *    proof covers unknown hosts there, as senders and as receivers; if it does not, the routes are stale.
 * A proof is about cables, too: if a cable ends elsewhere than in the plan, the fabric is another one, even if all nodes
 * are still reachable, and the routes are stale. A switch that is not in the file makes the routes stale as well. A switch
 * that is gone makes them stale only if a route leads through it.
 *
 * All routes are walked each time, whole: a quarter of a second with 11,664 hosts.
 */
#include "fit.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define STALE(...) return REASON_OF(why, "stale", __VA_ARGS__), false
#define INVALID(...) return REASON_OF(why, "invalid", __VA_ARGS__), false

/* Instead of hops: packets are dropped on the way; the route is followed just now; it was not followed yet. */
#define DROPPED UINT32_MAX
#define FOLLOWED (UINT32_MAX - 1)
#define UNKNOWN (UINT32_MAX - 2)

/* The walk along the routes to one destination. */
struct walk {
	const struct routes *routes;
	const struct live *live;
	const struct fit *fit;
	uint32_t *hops; /* [switch] how many it is away */
	uint32_t *path; /* [switch] */
	uint8_t *entries; /* [column][switch] of one LID offset: a walk reads a column, and those of a file are far apart */
	uint32_t column, at; /* `at`: the live switch at which the route ends */
	uint64_t guid;
	bool certified; /* numbers must rise along paths of hosts */
};

static bool match_switches(struct fit *fit, const struct routes *r, const struct live *live,
			   struct reason *why)
{
	for (uint32_t s = 0; s < live->switches; s++) {
		fit->row[s] = routes_switch(r, live->sw[s].guid);
		if (fit->row[s] == r->switches)
			STALE("stale: switch 0x%016" PRIx64 " (%.60s) is not in the routes file",
			       live->sw[s].guid, live->sw[s].name);
	}
	return true;
}

static bool offers_lanes(const struct routes *r, const struct live *live, struct reason *why)
{
	if (r->lanes == 1)
		return true;
	if (!live->qos)
		STALE("the routes need %u virtual lanes, but OpenSM runs without qos: set "
		       "\"qos TRUE\" in opensm.conf", r->lanes);
	if (live->data_lanes < r->lanes)
		STALE("the routes need %u virtual lanes, but a link between switches carries only "
		       "%u (see max_op_vls in opensm.conf)", r->lanes, live->data_lanes);
	if (!live->sl2vl)
		STALE("the routes need %u virtual lanes, but a switch has no SL to VL tables", r->lanes);
	return true;
}

/* A port without a cable in the plan needs no check: no route of the plan to a live terminal uses it. */
static bool cables_end_as_planned(const struct fit *fit, const struct routes *r,
				  const struct live *live, struct reason *why)
{
	if (r->amended) /* verify.h looks at what its entries use */
		return true;
	for (uint32_t s = 0; s < live->switches; s++)
		for (unsigned p = 1; p <= live->sw[s].ports && p < r->wide; p++) {
			const uint32_t peer = live->peer[live->sw[s].first_port + p];
			const uint32_t planned = r->far_ends[(size_t)fit->row[s] * r->wide + p];

			if (peer == NO_PEER || planned == ROUTES_NO_SWITCH)
				continue;
			if (planned != (fit->row[peer] << 8 | live->peer_port[live->sw[s].first_port + p]))
				STALE("stale: the cable at port %u of switch 0x%016" PRIx64 " (%.60s) ends "
				       "elsewhere than in the fabric of the routes", p,
				       live->sw[s].guid, live->sw[s].name);
		}
	return true;
}

/* A terminal is known if the file has it behind the port where it is now. */
static bool match_terminals(struct fit *fit, const struct routes *r, const struct live *live,
			    struct reason *why)
{
	uint32_t present = 0;

	for (uint32_t t = 0; t < live->terminals; t++) {
		const struct live_terminal *end = &live->end[t];
		const uint32_t leaf = fit->row[end->leaf];
		const uint32_t column = guid_index(r->terminal_guid, r->terminals, end->guid);
		bool known = column < r->terminals && r->terminal_leaf[column] == leaf;

		present += column < r->terminals;
		for (unsigned o = 0; known && o < r->offsets; o++)
			known = routes_row(r, r->forwarding, o, leaf)[column] == end->leaf_port;
		fit->column[t] = known ? column : r->terminals + leaf;
		fit->unknown += !known;
		/* Where a cable was, packets that enter have the lanes of that cable, which the proof of hosts does not cover. */
		if (!known && r->hop_lanes && end->leaf_port < r->wide &&
		    r->far_ends[(size_t)leaf * r->wide + end->leaf_port] != ROUTES_NO_SWITCH)
			STALE("stale: 0x%016" PRIx64 " is a host at port %u of switch 0x%016" PRIx64 " (%.60s), where the "
			       "plan has a cable to a switch; a new plan is needed", end->guid, end->leaf_port,
			       live->sw[end->leaf].guid, live->sw[end->leaf].name);
		if (!known && !r->senders[leaf])
			STALE("stale: 0x%016" PRIx64 " is a host at switch 0x%016" PRIx64 " (%.60s), where "
			       "the plan was not proved for hosts that it does not know; a new plan is "
			       "needed", end->guid, live->sw[end->leaf].guid, live->sw[end->leaf].name);
	}
	fit->vanished = r->terminals - present;
	return true;
}

static bool may_drop(const struct walk *w, uint32_t s)
{
	/* A repair may leave a switch without hosts, which no packet of a host passes, without a route. */
	return w->routes->amended && (!w->fit->hosts[s] || w->routes->amended->dropping);
}

/* Sets the switch behind an entry; ROUTES_NO_SWITCH where packets may be dropped. `last`: the number of the channel by which
 * packets of hosts arrive, or NULL; it becomes that of the next one. */
static bool step(const struct walk *w, uint32_t s, uint32_t *next, uint32_t *last, struct reason *why)
{
	const struct routes *r = w->routes;
	const struct live_switch *sw = &w->live->sw[s];
	const uint32_t row = w->fit->row[s];
	const uint8_t port = w->entries[(size_t)w->column * w->live->switches + s];
	uint32_t number;

	*next = ROUTES_NO_SWITCH;
	if (port == ROUTES_NO_ROUTE && may_drop(w, s))
		return true;
	if (port == ROUTES_NO_ROUTE)
		INVALID("invalid: switch 0x%016" PRIx64 " (%.60s) has no route to 0x%016" PRIx64, sw->guid, sw->name,
			w->guid);
	*next = port <= sw->ports ? w->live->peer[sw->first_port + port] : NO_PEER;
	if (*next == NO_PEER)
		STALE("stale: the route to 0x%016" PRIx64 " at %.60s leaves switch 0x%016" PRIx64 " (%.60s) by port %u, which "
		      "has no live link to a switch", w->guid, w->live->sw[w->at].name, sw->guid, sw->name, port);
	if (!last)
		return true;
	number = r->numbers[(size_t)row * r->wide + port];
	if (number <= *last)
		INVALID("invalid: the certificate does not hold on the way to 0x%016" PRIx64 " at switch 0x%016" PRIx64
			" (%.60s), port %u", w->guid, sw->guid, sw->name, port);
	*last = number;
	return true;
}

/* Follows the route from `s` up to a switch from which it was followed before. */
static bool follow(struct walk *w, uint32_t s, bool hosts, struct reason *why)
{
	uint32_t here = s, depth = 0, last = 0, next = s, hops;

	while (w->hops[here] == UNKNOWN) {
		if (!step(w, here, &next, hosts ? &last : NULL, why))
			return false;
		w->hops[here] = FOLLOWED;
		w->path[depth++] = here;
		if (next == ROUTES_NO_SWITCH)
			break;
		here = next;
	}
	if (next == ROUTES_NO_SWITCH)
		hops = DROPPED;
	else if (w->hops[here] == FOLLOWED)
		INVALID("invalid: the route to 0x%016" PRIx64 " loops through switch 0x%016" PRIx64 " (%.60s)", w->guid,
			w->live->sw[here].guid, w->live->sw[here].name);
	else if (hosts && depth && here != w->at && !step(w, here, &next, &last, why))
		return false;
	else
		hops = w->hops[here];
	while (depth) {
		here = w->path[--depth];
		hops += hops != DROPPED;
		w->hops[here] = hops;
	}
	if (w->hops[s] == DROPPED && w->fit->hosts[s] && !w->routes->amended->dropping)
		INVALID("invalid: packets from switch 0x%016" PRIx64 " (%.60s) to 0x%016" PRIx64 " are dropped",
			w->live->sw[s].guid, w->live->sw[s].name, w->guid);
	return true;
}

/* From the switches where packets of hosts begin, then from all others, whose numbers need not rise. */
static bool walk_to(struct walk *w, struct fit *fit, uint32_t column, uint32_t at, uint64_t guid, struct reason *why)
{
	const uint32_t switches = w->live->switches;
	const bool certified = w->certified && routes_covers(w->routes, column);

	w->column = column;
	w->at = at;
	w->guid = guid;
	for (uint32_t s = 0; s < switches; s++)
		w->hops[s] = s == at ? 0 : UNKNOWN;
	for (uint32_t s = 0; certified && s < switches; s++)
		if (fit->sends[s] && !follow(w, s, true, why))
			return false;
	for (uint32_t s = 0; s < switches; s++) {
		if (!follow(w, s, false, why))
			return false;
		if (w->hops[s] != DROPPED && w->hops[s] > fit->longest)
			fit->longest = w->hops[s];
	}
	return true;
}

static void fill_entries(struct walk *w, unsigned offset)
{
	const struct routes *r = w->routes;
	const uint32_t switches = w->live->switches;

	for (uint32_t from = 0; from < r->columns; from += 64)
		for (uint32_t s = 0; s < switches; s++) {
			const uint8_t *row = routes_row(r, r->forwarding, offset, w->fit->row[s]);

			for (uint32_t c = from; c < from + 64 && c < r->columns; c++)
				w->entries[(size_t)c * switches + s] = row[c];
		}
}

static bool walk_all(struct walk *w, struct fit *fit, struct reason *why)
{
	const struct live *live = w->live;
	const struct routes *r = w->routes;

	for (unsigned o = 0; o < r->offsets && o < live->lids_per_port; o++) {
		fill_entries(w, o);
		for (uint32_t d = 0; d < live_destinations(live); d++) {
			const struct live_destination to = live_destination(live, d);
			const uint32_t column = fit_column(fit, r, live, d);

			if (to.host && column >= r->terminals)
				continue; /* it uses the column of its leaf switch */
			if (!walk_to(w, fit, column, to.leaf, to.guid, why))
				return false;
		}
	}
	return true;
}

static bool find_senders(struct fit *fit, const struct routes *r, const struct live *live, struct reason *why)
{
	uint8_t *sends = calloc(r->switches, 1);

	if (!sends)
		return REASON(why, "no memory to check the routes"), false;
	routes_senders(r, sends);
	for (uint32_t t = 0; t < live->terminals; t++)
		fit->hosts[live->end[t].leaf] = 1;
	for (uint32_t s = 0; s < live->switches; s++)
		fit->sends[s] = fit->hosts[s] || sends[fit->row[s]];
	free(sends);
	return true;
}

bool fit_find(struct fit *fit, const struct routes *r, const struct live *live, struct reason *why)
{
	struct walk w = {.routes = r, .live = live, .fit = fit, .hops = calloc(live->switches + 1, sizeof(*w.hops)),
			 .path = calloc(live->switches + 1, sizeof(*w.path)), .certified = r->numbers && r->lanes == 1,
			 .entries = calloc((size_t)r->columns + 1, live->switches + 1)};
	bool good;

	*fit = (struct fit){.row = calloc(live->switches + 1, sizeof(*fit->row)),
			    .column = calloc(live->terminals + 1, sizeof(*fit->column)),
			    .hosts = calloc(live->switches + 1, 1), .sends = calloc(live->switches + 1, 1)};
	good = w.hops && w.path && w.entries && fit->row && fit->column && fit->hosts && fit->sends;
	if (!good)
		REASON(why, "no memory to check the routes");
	good = good && match_switches(fit, r, live, why) && offers_lanes(r, live, why) &&
	       cables_end_as_planned(fit, r, live, why) && match_terminals(fit, r, live, why) &&
	       find_senders(fit, r, live, why) && walk_all(&w, fit, why);
	free(w.hops);
	free(w.path);
	free(w.entries);
	return good;
}

void fit_free(struct fit *fit)
{
	free(fit->row);
	free(fit->column);
	free(fit->hosts);
	free(fit->sends);
	memset(fit, 0, sizeof(*fit));
}
