/*
 * A switch may have the entry that it was sent last, one that it had before, or the new one, and packets may be on their way by
 * those that were replaced a short time ago. If numbers rise from each entry that a packet of a host may take to every entry that
 * it may take next, no mixture has a loop or a credit loop. That includes the switch where the LID is: by older entries, it may
 * lead packets elsewhere. Routes in several lanes, or without numbers, are put in force only
 * where that changes no entry that leads anywhere.
 *
 * **Weak spot:** packets of hosts enter at live hosts and at the switches for whose hosts the plan was proved. A host that comes
 * up during this sweep sends nothing before OpenSM activates its port, after the tables: so 3.3.23 does it. A port that some other
 * tool activated meanwhile, at a switch that is neither, would send packets that nobody has counted with.
 */
#include "verify.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum kind { NEW, SENT, HAD, OLDER, ALL = OLDER + OLDERS }; /* of entries */

struct check {
	const struct own_task *t;
	struct tables *to;
	const struct routes *routes;
	uint8_t *seen, *lost;
	uint32_t *stack;
	uint32_t lid, end; /* `end`: the live switch at which routes to the LID end */
	enum kind kinds;   /* of entries that count: those before this one */
};

/* Whether the cable at a port, which is live, is where the routes have it. */
static bool is_planned(const struct check *c, uint32_t s, uint8_t port)
{
	const struct own_task *t = c->t;
	const uint32_t at = t->live->sw[s].first_port + port;

	return port < c->routes->wide && c->routes->far_ends[(size_t)c->to->fit.row[s] * c->routes->wide + port] ==
		(c->to->fit.row[t->live->peer[at]] << 8 | t->live->peer_port[at]);
}

/* An entry by which packets to the LID may leave a switch: ENTRY_NO_ROUTE if none do. */
static uint8_t entry(const struct check *c, uint32_t s, enum kind kind)
{
	const struct own_task *t = c->t;
	const struct known_switch *k = &t->known->sw[s];
	const struct live_switch *sw = &t->live->sw[s];
	const uint8_t port = kind == NEW ? c->to->entry[(size_t)s * t->lids + c->lid] :
			     kind == SENT ? k->sent[c->lid] : kind == HAD ? k->had[c->lid] :
			     k->older[(size_t)OLDERS * c->lid + (kind - OLDER)];

	if (port == ENTRY_UNKNOWN)
		return c->lost[s] ? ENTRY_NO_ROUTE : port;
	if (!port || port > sw->ports || t->live->peer[sw->first_port + port] == NO_PEER)
		return ENTRY_NO_ROUTE;
	/* A cable of the plan that has just come up may carry packets before a switch that does not answer is rewritten. */
	if (kind != NEW && t->live->fresh && t->live->fresh[sw->first_port + port] &&
	    (kind >= OLDER || !is_planned(c, s, port)))
		return ENTRY_NO_ROUTE;
	return port;
}

/* The number of a channel; 0 if it has none, or if its cable is not in the plan. */
static uint32_t number(const struct check *c, uint32_t s, uint8_t port)
{
	const size_t at = (size_t)c->to->fit.row[s] * c->routes->wide + port;

	return is_planned(c, s, port) ? c->routes->numbers[at] : 0;
}

/* Whether numbers rise from an entry of `s` to all of the next switch. */
static bool rises(const struct check *c, uint32_t s, uint8_t port, uint32_t next)
{
	const uint32_t from = port == ENTRY_UNKNOWN ? 0 : number(c, s, port);

	for (enum kind kind = NEW; from && kind < c->kinds; kind++) {
		const uint8_t on = entry(c, next, kind);

		if (on != ENTRY_NO_ROUTE && (on == ENTRY_UNKNOWN || number(c, next, on) <= from))
			return false;
	}
	return from != 0;
}

static bool mixture_rises(struct check *c)
{
	const struct live *live = c->t->live;
	uint32_t depth = 0;

	memset(c->seen, 0, live->switches);
	for (uint32_t s = 0; s < live->switches; s++)
		if (c->to->fit.sends[s])
			c->seen[c->stack[depth++] = s] = 1;
	while (depth) {
		const uint32_t s = c->stack[--depth];

		for (enum kind kind = NEW; kind < c->kinds; kind++) {
			const uint8_t port = entry(c, s, kind);
			uint32_t next;

			if (port == ENTRY_NO_ROUTE)
				continue;
			next = port == ENTRY_UNKNOWN ? s : live->peer[live->sw[s].first_port + port];
			if (!rises(c, s, port, next))
				return false;
			if (!c->seen[next])
				c->seen[c->stack[depth++] = next] = 1;
		}
	}
	return true;
}

/* Whether every entry by which packets may leave a switch is the new one. */
static bool changes_nothing(const struct check *c)
{
	for (uint32_t s = 0; s < c->t->live->switches; s++)
		for (enum kind kind = SENT; kind < c->kinds; kind++) {
			const uint8_t port = entry(c, s, kind);

			if (port != ENTRY_NO_ROUTE && port != entry(c, s, NEW))
				return false;
		}
	return true;
}

/* By LID: whether a switch is to have another entry than it was sent, or one by a cable that has just come up. */
static void mark_changed(const struct own_task *t, const struct tables *to, uint8_t *changed)
{
	const uint32_t lids = t->lids;

	memset(changed, 0, lids);
	for (uint32_t s = 0; s < t->live->switches; s++) {
		const uint8_t *table = to->entry + (size_t)s * lids, *sent = t->known->sw[s].sent;
		const struct live_switch *sw = &t->live->sw[s];
		uint8_t fresh[256] = {0}, any = 0;

		for (unsigned p = 1; t->live->fresh && p <= sw->ports; p++)
			any |= fresh[p] = t->live->fresh[sw->first_port + p];
		for (uint32_t lid = 0; lid < lids; lid++)
			changed[lid] |= table[lid] != sent[lid];
		for (uint32_t lid = 0; any && lid < lids; lid++)
			changed[lid] |= fresh[table[lid]];
	}
}

/* Whether the new entries of the LID may be put in force beside these kinds of others. */
static bool may_mix(struct check *c, enum kind kinds)
{
	c->kinds = kinds;
	return changes_nothing(c) || (c->routes->numbers && c->routes->lanes == 1 && mixture_rises(c));
}

/* Leaves the LID as it was sent last, but not by cables that have just come up; or, `moved`, without routes, except at the switch
 * where it is. */
static void put_off(const struct check *c, bool moved)
{
	const struct own_task *t = c->t;

	for (uint32_t s = 0; s < t->live->switches; s++) {
		const struct live_switch *sw = &t->live->sw[s];
		const uint8_t sent = t->known->sw[s].sent[c->lid];
		const bool fresh = sent <= sw->ports && t->live->fresh && t->live->fresh[sw->first_port + sent];

		if (s != c->end)
			c->to->entry[(size_t)s * t->lids + c->lid] = moved || fresh ? ENTRY_NO_ROUTE : sent;
	}
	c->to->put_off[c->lid] = moved ? LID_UNROUTED : LID_KEPT;
	c->to->put_off_count++;
}

static bool check_lids(struct check *c, const uint8_t *changed, const struct live_destination *to, struct reason *why)
{
	const struct own_task *t = c->t;
	const struct live_switch *leaf = &t->live->sw[to->leaf];

	c->end = to->leaf;
	for (c->lid = to->low; c->lid && c->lid <= to->high && c->lid < t->lids; c->lid++) {
		const bool moved = t->ours && t->known->end[c->lid] != leaf->guid;

		if (!changed[c->lid] || may_mix(c, ALL))
			continue;
		if (!moved && !may_mix(c, OLDER))
			return REASON_OF(why, "stale", "nothing proves that packets to LID %u at switch 0x%016" PRIx64 " (%.60s) "
					 "cannot loop while switches have old and new entries", c->lid, leaf->guid,
					 leaf->name), false;
		put_off(c, moved);
	}
	return true;
}

static bool tables_mix(struct check *c, struct reason *why)
{
	const struct own_task *t = c->t;
	uint8_t *changed = malloc(t->lids);
	bool good = changed != NULL;

	if (good)
		mark_changed(t, c->to, changed);
	for (uint32_t s = 0; good && s < t->live->switches; s++)
		c->lost[s] = known_is_lost(t->known, t->live, s);
	for (uint32_t d = 0; good && d < live_destinations(t->live); d++) {
		const struct live_destination to = live_destination(t->live, d);

		/* Where hosts send to it. */
		if (to.host || c->routes->senders[c->to->fit.row[to.leaf]])
			good = check_lids(c, changed, &to, why);
	}
	free(changed);
	return good;
}

bool verify_tables(const struct own_task *task, struct tables *tables, struct reason *why)
{
	const uint32_t switches = task->live->switches;
	struct check c = {.t = task, .to = tables, .routes = tables->routes, .seen = calloc(switches + 1, 1),
			  .lost = calloc(switches + 1, 1), .stack = calloc(switches + 1, sizeof(*c.stack))};
	bool good = c.seen && c.lost && c.stack;

	REASON(why, "no memory to verify the routes");
	good = good && tables_mix(&c, why);
	free(c.seen);
	free(c.lost);
	free(c.stack);
	return good;
}
