/*
 * Repairs one column. Broken are the switches from which the entries in force no longer lead to the destination. All others
 * keep their entries. The broken ones get new entries by "latest departure": the channels that leave them are taken by
 * falling number, and a channel is chosen if numbers rise from it to the destination. That reaches every switch that any
 * rising path reaches. Then, in the same order, each switch may take another channel that also serves the switches that chose
 * it: the entry in force, else that of the plan, else the one with the least load.
 *
 * A new entry may lead on only to larger numbers than those by which packets arrive by the entries in force, and to switches
 * that lead on by larger numbers still, by their entries in force and by their new ones, because some switches are rewritten
 * before others. If no such entry exists, packets are dropped there.
 *
 * Where packets can meet no entries but those that were sent last, and no packet's path is repaired, the other entries are
 * set: switches that no packet of a host passes get any entry without a loop, for management traffic, and entries return to
 * those of the plan.
 */
#include "repair_column.h"

#include <stdlib.h>
#include <string.h>

#include "repair_paths.h"

/* What decides between ports: the entry in force is best, then that of the plan, then the least predicted load; a rotation
 * decides between equal loads. */
static uint64_t cost(const struct repair_state *x, uint32_t s, uint8_t port)
{
	const size_t at = (size_t)s * x->wide + port;

	if (port == x->now[s] || port == x->planned[s])
		return port != x->now[s];
	return 2 + ((x->plan->loads[at] + x->added[at]) << 8 | (port + x->column) % x->wide);
}

/* Adds to a port the predicted load of one entry of the port that is left. */
static void add_load(struct repair_state *x, uint32_t s)
{
	const size_t from = (size_t)s * x->wide + (x->planned[s] < x->wide ? x->planned[s] : 0);

	if (x->new[s] < x->wide && x->new[s] != x->now[s])
		x->added[(size_t)s * x->wide + x->new[s]] += x->uses[from] ? x->plan->loads[from] / x->uses[from] + 1 : 1;
}

static int by_number(const void *a, const void *b)
{
	const struct channel *p = a, *q = b;

	return p->number > q->number ? -1 : p->number < q->number;
}

/* Whether `port` may be the new entry of `s`, which packets of hosts pass: its number, or 0. */
static uint32_t admissible(struct repair_state *x, uint32_t s, uint8_t port)
{
	const uint32_t next = repair_far(x, s, port) >> 8;
	uint32_t number;

	if (next != x->end && x->at[next].reach != LEADS && x->at[next].reach != FOUND)
		return 0;
	number = repair_rising_by(x, s, port);
	return number > x->at[s].arrive ? number : 0;
}

static void add_channel(struct repair_state *x, size_t *count, uint32_t s, uint8_t port)
{
	const uint32_t number = x->plan->numbers[(size_t)s * x->wide + port];

	if (repair_far(x, s, port) != ROUTES_NO_SWITCH)
		x->sorted[(*count)++] = (struct channel){number, s, port};
}

/* Finds an entry for as many broken switches as possible. */
static void search(struct repair_state *x)
{
	size_t count = 0;

	for (uint32_t i = 0; i < x->broken_count; i++)
		for (unsigned port = 1; port < x->wide; port++)
			add_channel(x, &count, x->broken[i], (uint8_t)port);
	qsort(x->sorted, count, sizeof(*x->sorted), by_number);
	for (size_t i = 0; i < count; i++) {
		const struct channel c = x->sorted[i];

		if (x->at[c.s].reach != ENDLESS || !admissible(x, c.s, c.port))
			continue;
		x->new[c.s] = c.port;
		x->at[c.s].reach = FOUND;
		x->order[x->order_count++] = c.s;
	}
}

/* Of those found, the switches that packets of hosts pass, by the entries in force or by the new ones, and the numbers that
 * their entries must serve. The others keep their entries: once the switch at the dead channel has a way, they have theirs. */
static void find_needs(struct repair_state *x)
{
	for (uint32_t i = 0; i < x->order_count; i++)
		x->at[x->order[i]].needed = 0, x->at[x->order[i]].need = 0;
	for (uint32_t i = x->order_count; i-- > 0;) { /* the farthest first */
		const uint32_t s = x->order[i], next = repair_far(x, s, x->new[s]) >> 8;
		const uint32_t number = x->plan->numbers[(size_t)s * x->wide + x->new[s]];

		x->at[s].needed = x->at[s].needed || x->at[s].passed;
		if (!x->at[s].needed || next == x->end || x->at[next].reach != FOUND)
			continue;
		x->at[next].needed = 1;
		x->at[next].need = number > x->at[next].need ? number : x->at[next].need;
	}
}

/* Replaces the entries found by the search with those that balance the loads. */
static void balance(struct repair_state *x)
{
	for (uint32_t i = 0; i < x->order_count; i++) {
		const uint32_t s = x->order[i];
		uint64_t least = UINT64_MAX;
		uint8_t best = x->new[s];

		if (!x->at[s].needed)
			continue;
		for (unsigned port = 1; port < x->wide; port++) {
			const uint32_t far = x->far[(size_t)s * x->wide + port];

			if (far == ROUTES_NO_SWITCH || (far >> 8 != x->end && x->at[far >> 8].reach != LEADS) ||
			    cost(x, s, (uint8_t)port) >= least || admissible(x, s, (uint8_t)port) <= x->at[s].need)
				continue;
			best = (uint8_t)port;
			least = cost(x, s, best);
		}
		x->new[s] = best;
		x->at[s].number = repair_rising_by(x, s, best);
		x->at[s].stamped = x->stamp;
		x->at[s].reach = LEADS;
		add_load(x, s);
	}
}

/* Lists the broken switches. Among them are those whose hosts' paths no longer rise, because they lead again through what was
 * dead, and the entries there were changed meanwhile. */
static void begin(struct repair_state *x)
{
	repair_follow(x);
	for (uint32_t i = 0; i < x->members; i++)
		if (x->at[x->member[i]].passed && x->at[x->member[i]].reach == LEADS && !repair_rising(x, x->member[i]))
			x->new[x->member[i]] = NO_ENTRY;
	repair_follow(x);
	x->broken_count = x->order_count = 0;
	for (uint32_t i = 0; i < x->members; i++) {
		if (x->at[x->member[i]].reach == LEADS)
			continue;
		x->new[x->member[i]] = NO_ENTRY;
		x->broken[x->broken_count++] = x->member[i];
	}
	x->stamp++;
}

/* The broken switches that got no entry keep theirs up to the dead channel, where packets are dropped. One that was never in
 * force is kept only if it leads to the end. */
static bool keep(struct repair_state *x)
{
	bool repaired = false; /* the path of a host's packets */

	for (uint32_t i = 0; i < x->broken_count; i++) {
		const uint32_t s = x->broken[i];

		if (x->at[s].reach != LEADS)
			x->new[s] = repair_far(x, s, x->now[s]) == ROUTES_NO_SWITCH ? NO_ENTRY : x->now[s];
		repaired = repaired || (x->at[s].passed && x->new[s] != x->now[s]);
	}
	repair_follow(x);
	for (uint32_t i = 0; i < x->broken_count; i++)
		if (x->at[x->broken[i]].lost && x->at[x->broken[i]].reach != LEADS)
			x->new[x->broken[i]] = NO_ENTRY;
	x->stamp++;
	return repaired;
}

/* Whether `s` may get an entry for management traffic: no packet of a host passes it. `dead`: its entry leads nowhere itself. */
static bool may_fill(const struct repair_state *x, uint32_t s, bool dead)
{
	return x->at[s].reach != LEADS && !x->at[s].passed && (!dead || repair_far(x, s, x->new[s]) == ROUTES_NO_SWITCH);
}

static bool fill_one(struct repair_state *x, uint32_t s)
{
	uint64_t least = UINT64_MAX;

	for (unsigned port = 1; port < x->wide; port++) {
		const uint32_t far = x->far[(size_t)s * x->wide + port];

		if (far == ROUTES_NO_SWITCH || x->at[far >> 8].reach != LEADS || cost(x, s, (uint8_t)port) >= least)
			continue;
		least = cost(x, s, (uint8_t)port);
		x->new[s] = (uint8_t)port;
	}
	return least != UINT64_MAX;
}

/* Fills all switches at dead channels, or one other; false if none can have a way. */
static bool fill_some(struct repair_state *x, bool dead)
{
	bool found = false;

	for (uint32_t i = 0; i < x->broken_count && (dead || !found); i++) {
		if (!may_fill(x, x->broken[i], dead) || !fill_one(x, x->broken[i]))
			continue;
		found = true;
		add_load(x, x->broken[i]);
		x->at[x->broken[i]].reach = LEADS;
	}
	if (found)
		repair_follow(x);
	return found;
}

/* First the switches at the dead channels, since the others may lead there. */
static void fill(struct repair_state *x)
{
	while (fill_some(x, true) || fill_some(x, false))
		;
}

/* Whether packets reach the end from `s` by its planned entry and the new ones of the others. */
static bool leads_as_planned(const struct repair_state *x, uint32_t s)
{
	uint32_t here = s;
	uint8_t port = x->planned[s];

	for (uint32_t hops = 0; here != x->end; hops++) {
		const uint32_t far = repair_far(x, here, port);

		if (far == ROUTES_NO_SWITCH || hops == x->switches || (hops && here == s))
			return false;
		here = far >> 8;
		port = x->new[here];
	}
	return true;
}

/* Sets the entries of the plan again where that may be done now. */
static void restore(struct repair_state *x)
{
	size_t count = 0;

	for (uint32_t i = 0; i < x->members; i++)
		if (x->now[x->member[i]] != x->planned[x->member[i]] && x->planned[x->member[i]] < x->wide)
			add_channel(x, &count, x->member[i], x->planned[x->member[i]]);
	qsort(x->sorted, count, sizeof(*x->sorted), by_number);
	for (size_t i = 0; i < count; i++) {
		const struct channel c = x->sorted[i];
		const uint32_t next = repair_far(x, c.s, c.port) >> 8;

		if (!leads_as_planned(x, c.s) || (next != x->end && x->at[next].lost) ||
		    (x->at[c.s].passed && !admissible(x, c.s, c.port)))
			continue;
		x->new[c.s] = c.port;
		x->stamp++;
	}
	repair_follow(x);
}

void repair_column(struct repair_state *x)
{
	bool waits;

	memcpy(x->new, x->now, x->switches);
	x->stamp++;
	repair_find_members(x);
	begin(x);
	if (x->covered) {
		search(x);
		find_needs(x);
		balance(x);
	}
	waits = keep(x) || !x->clean;
	if (!waits || !x->covered)
		fill(x);
	if (!waits)
		restore(x);
	x->later = 0;
	for (uint32_t i = 0; i < x->members; i++) {
		const uint32_t s = x->member[i];

		x->later += (waits && x->at[s].reach != LEADS) || (x->new[s] != x->planned[s] && leads_as_planned(x, s));
	}
}

void repair_end_column(struct repair_state *x)
{
	for (uint32_t i = 0; i < x->members; i++) {
		x->at[x->member[i]].inside = 0;
		x->at[x->member[i]].reach = LEADS;
	}
}
