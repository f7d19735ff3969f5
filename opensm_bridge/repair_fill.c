/*
 * The broken switches that no packet of a host passes. They forward management traffic alone, so they get any entry without
 * a loop, and as few of them as possible get another one.
 */
#include "repair_column.h"

/*
 * Of the switches that the search has found an entry for, those that no packet of a host passes, by the entries in force or by
 * the new ones, are left as they are if their entries do not lead into a dead channel themselves: once the switch where
 * the dead channel is has a way, they have theirs again. So as few entries change as may be.
 */
static void leave_unused(struct repair_state *x)
{
	for (uint32_t i = 0; i < x->broken_count; i++)
		x->found[x->broken[i]] = NO_ENTRY;
	for (uint32_t i = 0; i < x->members; i++)
		x->needs[x->member[i]] = 1;
	for (uint32_t i = 0; i < x->order_count; i++)
		x->needs[x->order[i]] = 0;
	for (uint32_t i = 0; i < x->order_count; i++) {
		const uint32_t s = x->order[i];
		uint32_t here = s;

		if (repair_is_unused(x, s) && repair_far(x, s, x->now[s]) != ROUTES_NO_SWITCH)
			continue;
		while (here != x->end && x->inside[here] && !x->needs[here]) {
			x->needs[here] = 1;
			here = repair_far(x, here, x->new[here]) >> 8;
		}
	}
	for (uint32_t i = 0; i < x->order_count; i++) {
		const uint32_t s = x->order[i];

		if (x->needs[s])
			continue;
		x->found[s] = x->new[s];
		x->new[s] = NO_ENTRY;
		x->rising[s] = 0;
		x->reach[s] = ENDLESS;
	}
}

/* Gives a switch the entry that the search has found for it, or else the cheapest one that leads to a switch which has a
 * way. */
static bool fill_one(struct repair_state *x, uint32_t s)
{
	const uint32_t next = repair_far(x, s, x->found[s]);
	uint64_t least = UINT64_MAX;

	if (next != ROUTES_NO_SWITCH && x->reach[next >> 8] == LEADS) {
		x->new[s] = x->found[s];
		return true;
	}

	for (unsigned port = 1; port < x->wide; port++) {
		const uint32_t far = x->far[(size_t)s * x->wide + port];

		if (far == ROUTES_NO_SWITCH || x->reach[far >> 8] != LEADS ||
		    repair_cost(x, s, (uint8_t)port) >= least)
			continue;
		least = repair_cost(x, s, (uint8_t)port);
		x->new[s] = (uint8_t)port;
	}
	return least != UINT64_MAX;
}

/* Whether a remaining switch may have a way that numbers do not rise along: no packet of a host passes it. */
static bool may_fill(const struct repair_state *x, uint32_t s)
{
	for (unsigned i = 0; i < x->barred_count; i++)
		if (x->barred[i].s == s)
			return false;
	return repair_is_unused(x, s);
}

/* Whether the entries in force lead from `s` to a dead channel of another switch that packets of hosts still pass: the next
 * repair may give that one a way, and then `s` has its own again. */
static bool may_wait(const struct repair_state *x, uint32_t s)
{
	uint32_t here = s;

	for (uint32_t hops = 0; hops < x->switches; hops++) {
		const uint32_t far = repair_far(x, here, x->now[here]);

		if (far == ROUTES_NO_SWITCH)
			return here != s && !repair_is_unused(x, here);
		here = far >> 8;
		if (here == x->end || !x->inside[here])
			break;
	}
	return false;
}

/*
 * The remaining switches: those at a dead channel get any way, and the others keep the entries that lead there; if that is
 * not possible, they get a way, too. What has none keeps its entry in force up to the dead channel, where packets are
 * dropped as before.
 */
static void fill(struct repair_state *x)
{
	for (bool found = true, any = false; found || !any;) {
		any = !found; /* in a round after one without success, any switch counts, but one at a time */
		found = false;
		for (uint32_t i = 0; i < x->broken_count; i++) {
			const uint32_t s = x->broken[i], far = repair_far(x, s, x->now[s]);

			if (x->reach[s] != ENDLESS)
				continue;
			if (far != ROUTES_NO_SWITCH && x->reach[far >> 8] == LEADS && !repair_is_barred(x, s, x->now[s]) &&
			    !(x->covered && x->who.sends[s]))
				x->new[s] = x->now[s];
			else if (!may_fill(x, s) || (far != ROUTES_NO_SWITCH && (!any || may_wait(x, s))) || !fill_one(x, s))
				continue;
			x->reach[s] = LEADS;
			found = true;
			if (any)
				break; /* others may keep the entries that lead there */
		}
	}
	for (uint32_t i = 0; i < x->broken_count; i++) {
		const uint32_t s = x->broken[i];

		if (x->reach[s] == ENDLESS && x->reach_now[s] != LEADS &&
		    repair_far(x, s, x->now[s]) != ROUTES_NO_SWITCH)
			x->new[s] = x->now[s];
	}
}

void repair_fill(struct repair_state *x)
{
	leave_unused(x);
	fill(x);
}
