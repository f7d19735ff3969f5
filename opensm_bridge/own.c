/* Repair, fit, tables, verification: what fails at one of them is not put in force. See own.h. */
#include "own.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "repair.h"
#include "verify.h"

void own_free(struct tables *t)
{
	routes_drop(t->routes);
	fit_free(&t->fit);
	free(t->entry);
	free(t->put_off);
	*t = (struct tables){.routes = NULL};
}

/* The tables that routes which fit make of each switch; false without memory. */
static bool make_tables(struct tables *to, const struct own_task *task, const struct routes *r)
{
	const struct live *live = task->live;
	const uint32_t lids = to->lids;

	to->entry = malloc((size_t)live->switches * lids + 1);
	to->put_off = calloc(lids + 1, 1);
	if (!to->entry || !to->put_off)
		return false;
	memset(to->entry, ENTRY_NO_ROUTE, (size_t)live->switches * lids);
	for (uint32_t s = 0; s < live->switches; s++) {
		uint8_t *table = to->entry + (size_t)s * lids;
		const uint8_t *row[UINT8_MAX + 1];

		for (unsigned o = 0; o < r->offsets; o++)
			row[o] = routes_row(r, r->forwarding, o, to->fit.row[s]);
		for (uint32_t d = 0; d < live_destinations(live); d++) {
			const struct live_destination at = live_destination(live, d);
			const uint32_t column = fit_column(&to->fit, r, live, d);

			for (unsigned lid = at.low; lid && lid <= at.high && lid < lids; lid++)
				table[lid] = at.host && at.leaf == s ? at.host->leaf_port : row[fit_offset(r, lid, at.low)][column];
		}
	}
	return true;
}

bool own_load(struct tables *to, const struct own_task *task, struct routes *routes, struct reason *why)
{
	*to = (struct tables){.lids = task->lids, .routes = routes_hold(routes)};
	if (!fit_find(&to->fit, routes, task->live, why))
		return own_free(to), false;
	if (make_tables(to, task, routes))
		return true;
	own_free(to);
	REFUSE("no memory to install the routes");
}

/* Whether packets of hosts at `s` do not reach LID `lid` at switch `end` by these entries. */
static bool loses(const struct tables *t, const struct live *live, uint32_t s, uint32_t lid, uint32_t end)
{
	for (uint32_t hops = 0; s != end; hops++) {
		const uint8_t port = t->entry[(size_t)s * t->lids + lid];

		if (hops == live->switches || !port || port > live->sw[s].ports ||
		    live->peer[live->sw[s].first_port + port] == NO_PEER)
			return true;
		s = live->peer[live->sw[s].first_port + port];
	}
	return false;
}

/* Follows the entries themselves: a repair may drop less than it was allowed to, and what is put off may drop nothing. All other
 * tables drop nothing (fit.h), and need no look. */
static bool drops(const struct tables *t, const struct live *live)
{
	const bool all = t->routes->amended && t->routes->amended->dropping;

	for (uint32_t d = 0; (all || t->put_off_count) && d < live_destinations(live); d++) {
		const struct live_destination to = live_destination(live, d);

		for (uint32_t lid = to.low; lid && lid <= to.high && lid < t->lids; lid++)
			for (uint32_t s = 0; (all || t->put_off[lid]) && s < live->switches; s++)
				if (t->fit.hosts[s] && loses(t, live, s, lid, to.leaf))
					return true;
	}
	return false;
}

static bool load_verified(struct tables *to, const struct own_task *task, struct routes *routes, struct reason *why)
{
	if (!own_load(to, task, routes, why))
		return false;
	if (task->known && !verify_tables(task, to, why))
		return own_free(to), false;
	to->drops = drops(to, task->live);
	*why = (struct reason){.text = ""};
	return true;
}

/* The same routes as before. Where nothing is left to wait for, what they drop would stay dropped: no later repair is better. */
static bool load_again(struct tables *to, const struct own_task *task, struct routes *routes, struct reason *why)
{
	if (!load_verified(to, task, routes, why))
		return false;
	if (!to->drops || !task->settled || to->put_off_count)
		return true;
	own_free(to);
	return REASON_OF(why, "stale", "generation %ju drops packets of hosts as it is repaired, and no further repair serves them",
			 (uintmax_t)routes->generation), false;
}

/* Whether the switches have all entries of these routes to a live node; one that is not where the routes have it is left out. */
static bool are_held(const struct routes *r, const struct own_task *task)
{
	const struct live *live = task->live;

	for (uint32_t d = 0; d < live_destinations(live); d++) {
		const struct live_destination to = live_destination(live, d);
		const uint32_t leaf = routes_switch(r, live->sw[to.leaf].guid);
		const uint32_t column = to.host ? guid_index(r->terminal_guid, r->terminals, to.guid) : r->terminals + leaf;

		if (leaf == r->switches || (to.host && (column == r->terminals || r->terminal_leaf[column] != leaf)))
			continue;
		for (uint32_t s = 0; s < live->switches; s++) {
			const uint32_t row = routes_switch(r, live->sw[s].guid);

			for (uint32_t lid = to.low; row < r->switches && lid && lid <= to.high && lid < task->lids; lid++)
				if (task->known->sw[s].had[lid] !=
				    routes_row(r, r->forwarding, fit_offset(r, lid, to.low), row)[column])
					return false;
		}
	}
	return true;
}

bool own_choose(struct tables *to, const struct own_task *task, struct routes *routes, struct reason *unrepaired,
		struct reason *why)
{
	struct routes *repaired = NULL;
	bool good = false;

	*unrepaired = (struct reason){.text = ""};
	/*
	 * **Weak spot:** when OpenSM starts, or takes over for the first time, routes.sar counts as what the switches have, since the agent writes it once it
	 * has read back that it is in force. If they have other tables (those of a repair that the agent has not followed, of
	 * another engine, or of another subnet manager), packets may circle until all switches are rewritten. The next engine's
	 * tables would be proved no better, and would differ in more entries (tests/property/test_judged.py counts both).
	 */
	if (!task->known && !task->assumed)
		return REASON_OF(why, "stale", "nothing is known of the switches' tables, so nothing proves that generation %ju may "
				 "replace them", (uintmax_t)routes->generation), false;
	if (task->known && task->held && !are_held(routes, task))
		return REASON_OF(why, "stale", "switches have other entries than those of generation %ju",
				 (uintmax_t)routes->generation), false;
	if (routes->numbers && routes->lanes == 1)
		repaired = repair(routes, task->live, task->ours ? task->known : NULL, unrepaired);
	if (repaired && repaired != routes)
		good = load_verified(to, task, repaired, unrepaired);
	to->step = good;
	routes_drop(repaired);
	return good || load_again(to, task, routes, why);
}
