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
 */
#include "fit.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define AT_ONCE 64 /* columns walked together: one cache line of a row */
#define ARRIVED NO_PEER
#define DROPPED (NO_PEER - 1)

#define REFUSE(...) return REASON_OF(why, "stale", __VA_ARGS__), false
#define INVALID(...) return REASON_OF(why, "invalid", __VA_ARGS__), false

struct walk {
	const struct routes *routes;
	const struct live *live;
	struct walked *walked;
	const struct fit *fit;
	uint8_t *hosts;		/* [switch] it has live terminals */
	uint32_t *next;		/* [switch][AT_ONCE] */
	uint64_t *reaches;	/* [switch] the last target that it is known to reach */
	uint32_t *hops;		/* [switch] how many hops it is away from that target */
	uint64_t *passed;	/* [switch] the last path that led through it */
	uint64_t targets, paths; /* counters of both */
	bool drops[AT_ONCE];	 /* an entry on the way to this target drops packets */
};

struct target {
	uint32_t column, at; /* `at`: the live switch at which the route ends */
	uint64_t guid;
};

static bool match_switches(struct fit *fit, const struct routes *r, const struct live *live,
			   struct reason *why)
{
	for (uint32_t s = 0; s < live->switches; s++) {
		fit->row[s] = routes_switch(r, live->sw[s].guid);
		if (fit->row[s] == r->switches)
			REFUSE("stale: switch 0x%016" PRIx64 " (%.60s) is not in the routes file",
			       live->sw[s].guid, live->sw[s].name);
	}
	return true;
}

static bool offers_lanes(const struct routes *r, const struct live *live, struct reason *why)
{
	if (r->lanes == 1)
		return true;
	if (!live->qos)
		REFUSE("the routes need %u virtual lanes, but OpenSM runs without qos: set "
		       "\"qos TRUE\" in opensm.conf", r->lanes);
	if (live->data_lanes < r->lanes)
		REFUSE("the routes need %u virtual lanes, but a link between switches carries only "
		       "%u (see max_op_vls in opensm.conf)", r->lanes, live->data_lanes);
	if (!live->sl2vl)
		REFUSE("the routes need %u virtual lanes, but a switch has no SL to VL tables", r->lanes);
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
				REFUSE("stale: the cable at port %u of switch 0x%016" PRIx64 " (%.60s) ends "
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
			REFUSE("stale: 0x%016" PRIx64 " is a host at port %u of switch 0x%016" PRIx64 " (%.60s), where the "
			       "plan has a cable to a switch; a new plan is needed", end->guid, end->leaf_port,
			       live->sw[end->leaf].guid, live->sw[end->leaf].name);
		if (!known && !r->senders[leaf])
			REFUSE("stale: 0x%016" PRIx64 " is a host at switch 0x%016" PRIx64 " (%.60s), where "
			       "the plan was not proved for hosts that it does not know; a new plan is "
			       "needed", end->guid, live->sw[end->leaf].guid, live->sw[end->leaf].name);
	}
	fit->vanished = r->terminals - present;
	return true;
}

/* Finds the next switch from switch `s` to each of up to AT_ONCE targets. */
static bool look_ahead(struct walk *w, unsigned offset, uint32_t s, const struct target *target,
		       unsigned count, struct reason *why)
{
	const struct live_switch *sw = &w->live->sw[s];
	const uint8_t *row = routes_row(w->routes, w->routes->forwarding, offset, w->fit->row[s]);

	for (unsigned i = 0; i < count; i++) {
		const uint8_t port = row[target[i].column];
		uint32_t next = ARRIVED;

		if (s != target[i].at) {
			/* A repair may leave a switch without hosts, which no packet of a host passes, without a route. */
			if (port == ROUTES_NO_ROUTE && w->routes->amended &&
			    (!w->hosts[s] || w->routes->amended->dropping)) {
				w->next[(size_t)s * AT_ONCE + i] = DROPPED;
				w->drops[i] = true;
				continue;
			}
			if (port == ROUTES_NO_ROUTE)
				INVALID("invalid: switch 0x%016" PRIx64 " (%.60s) has no route to "
				       "0x%016" PRIx64, sw->guid, sw->name, target[i].guid);
			next = port <= sw->ports ? w->live->peer[sw->first_port + port] : NO_PEER;
			if (next == NO_PEER)
				REFUSE("stale: the route to 0x%016" PRIx64 " leaves switch 0x%016" PRIx64
				       " (%.60s) by port %u, which has no live link to a switch",
				       target[i].guid, sw->guid, sw->name, port);
		}
		w->next[(size_t)s * AT_ONCE + i] = next;
	}
	return true;
}

static bool all_arrive(struct walk *w, unsigned i, const struct target *target, struct reason *why)
{
	const uint64_t proven = ++w->targets;

	w->reaches[target->at] = proven;
	for (uint32_t s = 0; s < w->live->switches; s++) {
		const uint64_t path = ++w->paths;
		uint32_t here, hops = 0;

		for (here = s; here != DROPPED && w->reaches[here] != proven;
		     here = w->next[(size_t)here * AT_ONCE + i]) {
			if (w->passed[here] == path)
				INVALID("invalid: the route to 0x%016" PRIx64 " loops through switch "
				       "0x%016" PRIx64 " (%.60s)", target->guid,
				       w->live->sw[here].guid, w->live->sw[here].name);
			w->passed[here] = path;
			hops++;
		}
		if (here == DROPPED && w->hosts[s] && !w->routes->amended->dropping)
			INVALID("invalid: packets from switch 0x%016" PRIx64 " (%.60s) to 0x%016" PRIx64
				" are dropped", w->live->sw[s].guid, w->live->sw[s].name, target->guid);
		if (here == DROPPED)
			continue; /* nothing on this path reaches the target */
		hops += here == target->at ? 0 : w->hops[here];
		w->walked->longest = hops > w->walked->longest ? hops : w->walked->longest;
		for (here = s; w->reaches[here] != proven; here = w->next[(size_t)here * AT_ONCE + i]) {
			w->reaches[here] = proven;
			w->hops[here] = hops--;
		}
	}
	return true;
}

/* Walks up to AT_ONCE targets. */
static bool walk_some(struct walk *w, const struct target *target, unsigned count,
		      unsigned offset, struct reason *why)
{
	memset(w->drops, 0, sizeof(w->drops));
	for (uint32_t s = 0; s < w->live->switches; s++)
		if (!look_ahead(w, offset, s, target, count, why))
			return false;
	for (unsigned i = 0; i < count; i++) {
		if (!all_arrive(w, i, &target[i], why))
			return false;
		/* Whether packets may be dropped depends on where hosts are now, so it is looked at every time. */
		w->walked->arrives[(size_t)offset * w->routes->columns + target[i].column] = !w->drops[i];
	}
	return true;
}

/* Adds a target, unless its column was walked before and nothing on the way has changed. */
static unsigned add_target(const struct walk *w, unsigned offset, struct target *target, unsigned count, uint32_t column,
			   uint32_t at, uint64_t guid)
{
	if (w->walked->arrives[(size_t)offset * w->routes->columns + column])
		return count;
	target[count] = (struct target){column, at, guid};
	return count + 1;
}

static bool walk_all(struct walk *w, unsigned offset, struct reason *why)
{
	const struct live *live = w->live;
	const uint32_t terminals = w->routes->terminals;
	struct target target[AT_ONCE];
	unsigned count = 0;

	for (uint32_t d = 0; d < live->switches + live->terminals; d++) {
		const uint32_t t = d - live->switches;

		if (d < live->switches)
			count = add_target(w, offset, target, count, terminals + w->fit->row[d], d, live->sw[d].guid);
		else if (w->fit->column[t] < terminals) /* the others use the column of their leaf switch */
			count = add_target(w, offset, target, count, w->fit->column[t], live->end[t].leaf,
					   live->end[t].guid);
		if (count == AT_ONCE && !walk_some(w, target, count, offset, why))
			return false;
		if (count == AT_ONCE)
			count = 0;
	}
	return !count || walk_some(w, target, count, offset, why);
}

/* Columns that nothing live is reached by were not walked: a walk is due when it comes back. */
static void forget_dead(struct walk *w, unsigned offset, uint8_t *is_target)
{
	const uint32_t terminals = w->routes->terminals;
	uint8_t *arrives = w->walked->arrives + (size_t)offset * w->routes->columns;

	memset(is_target, 0, w->routes->columns);
	for (uint32_t s = 0; s < w->live->switches; s++)
		is_target[terminals + w->fit->row[s]] = 1;
	for (uint32_t t = 0; t < w->live->terminals; t++)
		is_target[w->fit->column[t]] = 1;
	for (uint32_t d = 0; d < w->routes->columns; d++)
		arrives[d] &= is_target[d];
}

static bool walk_every_offset(const struct fit *fit, struct walked *walked, const struct live *live,
			      struct reason *why)
{
	const struct routes *r = walked->routes;
	struct walk w = {.routes = r, .live = live, .fit = fit, .walked = walked};
	uint8_t *is_target = malloc(r->columns);
	bool good = false;

	w.hosts = calloc(live->switches, sizeof(*w.hosts));
	w.next = malloc((size_t)live->switches * AT_ONCE * sizeof(*w.next));
	w.reaches = calloc(live->switches, sizeof(*w.reaches));
	w.passed = calloc(live->switches, sizeof(*w.passed));
	w.hops = calloc(live->switches, sizeof(*w.hops));
	if (!w.hosts || !w.hops || !w.next || !w.reaches || !w.passed || !is_target)
		REASON(why, "no memory to check the routes");
	else
		good = true;
	for (uint32_t t = 0; good && t < live->terminals; t++)
		w.hosts[live->end[t].leaf] = 1;
	for (unsigned o = 0; good && o < r->offsets; o++) {
		if (o < live->lids_per_port)
			good = walk_all(&w, o, why);
		forget_dead(&w, o, is_target);
	}
	free(is_target);
	free(w.hosts);
	free(w.next);
	free(w.reaches);
	free(w.passed);
	free(w.hops);
	return good;
}

bool fit_find(struct fit *fit, struct walked *last, struct routes *r, const struct live *live, struct reason *why)
{
	struct walked walked;
	bool good;

	memset(fit, 0, sizeof(*fit));
	fit->row = malloc((live->switches + 1) * sizeof(*fit->row));
	fit->column = malloc((live->terminals + 1) * sizeof(*fit->column));
	if (!fit->row || !fit->column)
		return REASON(why, "no memory to check the routes"), false;
	if (!match_switches(fit, r, live, why) || !offers_lanes(r, live, why) ||
	    !cables_end_as_planned(fit, r, live, why) || !match_terminals(fit, r, live, why))
		return false;
	if (!walked_since(&walked, last, r, live, fit->row))
		return REASON(why, "no memory to check the routes"), false;
	good = walk_every_offset(fit, &walked, live, why);
	if (good && last) {
		walked_free(last);
		*last = walked;
	} else {
		walked_free(&walked);
	}
	return good;
}

void fit_free(struct fit *fit)
{
	free(fit->row);
	free(fit->column);
	memset(fit, 0, sizeof(*fit));
}
