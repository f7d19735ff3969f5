/*
 * Repairs one column. Broken are the switches from which the entries in force no longer lead to the destination. All others
 * keep their entries. The broken ones get new entries by "latest departure": the channels that leave them are taken by
 * falling number, and a channel is chosen if numbers rise from it to the destination. That reaches every switch that any
 * rising path reaches. Then, in the same order, each switch may take another channel that also serves the switches that chose it:
 * the entry of the plan, else the one with the least load.
 *
 * A new entry may lead on only to larger numbers than those by which packets arrive according to the entries in force,
 * because some switches still have these while others are rewritten. If no such entry exists, packets are dropped there.
 * Switches that no packet of a host passes get an entry without a loop, for management traffic.
 */
#include "repair_column.h"

#include <stdlib.h>
#include <string.h>

/* Sets `rising` of the members that keep their entries, or take those of the plan. */
static void find_rising(struct repair_state *x)
{
	for (uint32_t i = 0; i < x->members; i++) /* that of the others is set by the search */
		x->known[x->member[i]] = x->reach[x->member[i]] != LEADS;
	for (uint32_t i = 0; i < x->members; i++)
		(void)repair_rising(x, x->member[i]);
}

/* Whether packets that arrive at `s` in these lanes from `from` by `port_in` go on rising if they leave by `port`. */
static bool serves(const struct repair_state *x, uint32_t from, uint8_t port_in, unsigned lanes, uint32_t s,
		   uint8_t port, unsigned rising)
{
	const unsigned in = repair_far(x, from, port_in) & 255;

	for (unsigned lane = 0; lanes >> lane; lane++) {
		unsigned on;

		if (!(lanes >> lane & 1))
			continue;
		on = certificate_lane(x->plan, s, in, port, lane);
		if (!(rising >> on & 1) ||
		    repair_number(x, on, s, port) <= repair_number(x, lane, from, port_in))
			return false;
	}
	return true;
}

/* The lanes that rise by `port` if it may be the new entry of a broken switch `s`; else 0. */
static unsigned admissible(struct repair_state *x, uint32_t s, uint8_t port)
{
	const uint32_t far = repair_far(x, s, port), next = far >> 8;
	const unsigned begin = x->covered ? certificate_begin(&x->who, x->offset, s, x->column, port) : 0;
	unsigned rising;

	(void)repair_rising(x, next);
	rising = repair_rising_by(x, s, port);
	if (!rising || begin & ~rising || repair_is_barred(x, s, port))
		return 0;
	for (uint32_t u = x->arrival[s]; u != ROUTES_NO_SWITCH; u = x->next_arrival[u])
		if (!serves(x, u, x->now[u], x->held[0][u], s, port, rising))
			return 0;
	/* Until the next switch is rewritten, packets take its entry in force there, if that leads anywhere. */
	if (x->covered && next != x->end && x->new[next] != x->now[next] &&
	    repair_far(x, next, x->now[next]) != ROUTES_NO_SWITCH &&
	    ((x->strict && !x->held[0][next]) || !serves(x, s, port, begin, next, x->now[next], ~0u)))
		return 0;
	return rising;
}

static int by_rank(const void *a, const void *b)
{
	const struct channel *p = a, *q = b;

	return p->rank > q->rank ? -1 : p->rank < q->rank;
}

/* Finds an entry for as many broken switches as possible. */
static void search(struct repair_state *x)
{
	size_t count = 0;
	bool found = true;

	for (uint32_t i = 0; i < x->broken_count; i++) {
		const uint32_t s = x->broken[i];

		x->new[s] = NO_ENTRY;
		x->rising[s] = 0;
		x->reach[s] = ENDLESS;
		for (unsigned port = 1; port < x->wide; port++) {
			const size_t at = (size_t)s * x->wide + port;

			if (x->rank[at] && x->far[at] != ROUTES_NO_SWITCH)
				x->sorted[count++] = (struct channel){x->rank[at], s, (uint8_t)port};
		}
	}
	qsort(x->sorted, count, sizeof(*x->sorted), by_rank);
	for (unsigned round = 0; found && round < x->plan->lanes; round++) {
		found = false;
		for (size_t i = 0; i < count; i++) {
			const struct channel c = x->sorted[i];
			const uint32_t next = repair_far(x, c.s, c.port) >> 8;
			unsigned rising;

			if (x->reach[c.s] != ENDLESS || (x->reach[next] != LEADS && x->reach[next] != FOUND))
				continue;
			rising = admissible(x, c.s, c.port);
			if (!rising)
				continue;
			x->new[c.s] = c.port;
			x->rising[c.s] = (uint16_t)rising;
			x->reach[c.s] = FOUND;
			x->order[x->order_count++] = c.s;
			found = true;
		}
	}
}

/* Lists the switches whose found entries lead to each broken switch, and the lanes that each entry must serve. */
static void find_needs(struct repair_state *x)
{
	for (uint32_t i = 0; i < x->order_count; i++) {
		const uint32_t s = x->order[i];

		x->child[s] = ROUTES_NO_SWITCH;
		x->needs[s] = x->covered ? (uint16_t)certificate_begin(&x->who, x->offset, s, x->column, x->new[s]) : 0;
	}
	for (uint32_t i = x->order_count; i-- > 0;) {
		const uint32_t s = x->order[i], far = repair_far(x, s, x->new[s]), next = far >> 8;

		if (next == x->end || x->reach[next] != FOUND)
			continue;
		x->next_child[s] = x->child[next];
		x->child[next] = s;
		for (unsigned lane = 0; x->needs[s] >> lane; lane++)
			if (x->needs[s] >> lane & 1)
				x->needs[next] |= (uint16_t)(1u << certificate_lane(x->plan, next, far & 255,
										   x->new[next], lane));
	}
}

static bool children_are_served(const struct repair_state *x, uint32_t s, uint8_t port, unsigned rising)
{
	for (uint32_t u = x->child[s]; u != ROUTES_NO_SWITCH; u = x->next_child[u])
		if (!serves(x, u, x->path[u], x->needs[u], s, port, rising))
			return false;
	return true;
}

/* Replaces the entries found by the search with those that balance the loads. `path` keeps the search's entries. */
static void balance(struct repair_state *x)
{
	for (uint32_t i = 0; i < x->order_count; i++)
		x->path[x->order[i]] = x->new[x->order[i]];
	for (uint32_t i = 0; i < x->order_count; i++) {
		const uint32_t s = x->order[i];
		uint8_t best = x->new[s];
		uint64_t least = UINT64_MAX;

		for (unsigned port = 1; port < x->wide; port++) {
			const uint32_t far = x->far[(size_t)s * x->wide + port];
			const uint64_t cost = repair_cost(x, s, (uint8_t)port);
			unsigned rising;

			if (far == ROUTES_NO_SWITCH || x->reach[far >> 8] != LEADS || cost >= least)
				continue;
			rising = admissible(x, s, (uint8_t)port);
			if (!rising || !children_are_served(x, s, (uint8_t)port, rising))
				continue;
			best = (uint8_t)port;
			least = cost;
		}
		x->new[s] = best;
		x->rising[s] = (uint16_t)repair_rising_by(x, s, best);
		x->reach[s] = LEADS;
	}
}

/* Sets `held` to the lanes in force, and lists the switches that lead packets to each switch. */
static void list_arrivals(struct repair_state *x)
{
	mixture_in_force(x);
	for (uint32_t i = 0; i < x->members; i++)
		x->arrival[x->member[i]] = ROUTES_NO_SWITCH;
	for (uint32_t i = 0; i < x->members; i++) {
		const uint32_t s = x->member[i], next = repair_far(x, s, x->now[s]) >> 8;

		if (!x->held[0][s] || !x->inside[next])
			continue;
		x->next_arrival[s] = x->arrival[next];
		x->arrival[next] = s;
	}
}

/* Whether numbers rise on the paths of the hosts at a member that leads to the end. */
static bool hosts_rise(const struct repair_state *x, uint32_t s)
{
	return !x->covered || !(certificate_begin(&x->who, x->offset, s, x->column, x->new[s]) & ~x->rising[s]);
}

static void add_broken(struct repair_state *x, uint32_t s)
{
	x->new[s] = NO_ENTRY;
	x->broken[x->broken_count++] = s;
}

/* Follows the new entries; the members that do not reach the end any more are broken, too. */
static void add_cut_off(struct repair_state *x)
{
	repair_follow(x, x->new, x->reach);
	for (uint32_t i = 0; i < x->members; i++)
		if (x->reach[x->member[i]] != LEADS && x->new[x->member[i]] != NO_ENTRY)
			add_broken(x, x->member[i]);
	find_rising(x);
}

/*
 * Sets the entries that stay, or return to the plan's, and lists the broken switches. Among them are those whose hosts'
 * paths no longer rise, because they lead again through what was dead, and the entries there were changed meanwhile.
 */
static void begin(struct repair_state *x)
{
	list_arrivals(x);
	repair_follow(x, x->now, x->reach_now);
	if (x->restores)
		repair_follow(x, x->planned, x->reach);
	x->broken_count = 0;
	for (uint32_t i = 0; i < x->members; i++) {
		const uint32_t s = x->member[i];

		x->new[s] = x->now[s];
		if (x->restores && x->reach[s] == LEADS && (x->restores == RESTORE_ALL || repair_is_unused(x, s)))
			x->new[s] = x->planned[s];
		else if (x->reach_now[s] != LEADS)
			add_broken(x, s);
	}
	add_cut_off(x);
	for (uint32_t i = 0; i < x->members; i++)
		if (x->reach[x->member[i]] == LEADS && !hosts_rise(x, x->member[i]))
			add_broken(x, x->member[i]);
	add_cut_off(x);
}

/* Whether the new entries alone are sound. */
static bool is_sound(struct repair_state *x)
{
	bool sound = true;

	repair_follow(x, x->new, x->reach);
	find_rising(x);
	for (uint32_t i = 0; i < x->members; i++)
		sound = sound && (x->reach[x->member[i]] != LEADS || hosts_rise(x, x->member[i]));
	return sound;
}

static bool find_entries(struct repair_state *x)
{
	begin(x);
	x->order_count = 0;
	if (x->covered) {
		search(x);
		find_needs(x);
		balance(x);
	}
	repair_fill(x);
	for (uint32_t i = 0; x->covered && i < x->broken_count; i++)
		if (x->reach[x->broken[i]] != LEADS && x->who.sends[x->broken[i]])
			return false;
	return true;
}

/* Entries that the next repair may set. */
static uint32_t count_later(const struct repair_state *x)
{
	uint32_t later = x->barred_count + (x->wanted != x->restores);

	for (uint32_t i = 0; i < x->broken_count; i++)
		later += x->reach[x->broken[i]] != LEADS;
	return later;
}

void repair_column(struct repair_state *x)
{
	uint32_t culprit = ROUTES_NO_SWITCH;

	x->wanted = x->restores;
	memcpy(x->new, x->now, x->switches);
	memset(x->known, 0, x->switches);
	repair_find_members(x);
	x->barred_count = 0;
	x->strict = true;
	for (;;) {
		x->strict = x->strict && find_entries(x);
		if (!x->strict)
			(void)find_entries(x);
		if (mixture_rises(x, &culprit))
			break;
		if (x->restores && culprit != ROUTES_NO_SWITCH && x->new[culprit] == x->planned[culprit]) {
			x->restores--; /* switches that lead elsewhere must be rewritten first */
		} else if (x->barred_count < MOST_BARRED && culprit != ROUTES_NO_SWITCH) {
			x->barred[x->barred_count].s = culprit;
			x->barred[x->barred_count++].port = x->new[culprit];
		} else { /* what is left of the entries in force is sound */
			x->restores = RESTORE_NONE;
			begin(x);
			break;
		}
	}
	x->sound = is_sound(x);
	repair_add_loads(x);
	x->later = count_later(x);
}

void repair_end_column(struct repair_state *x)
{
	for (uint32_t i = 0; i < x->members; i++) {
		x->inside[x->member[i]] = 0;
		x->reach[x->member[i]] = x->reach_now[x->member[i]] = LEADS;
	}
}
