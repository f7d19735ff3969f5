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

static bool load(struct tables *to, const struct own_task *task, struct routes *routes, bool drops, struct reason *why)
{
	*to = (struct tables){.lids = task->lids, .routes = routes_hold(routes)};
	if (!fit_find(&to->fit, routes, task->live, drops, why))
		return own_free(to), false;
	if (make_tables(to, task, routes))
		return true;
	own_free(to);
	REFUSE("no memory to install the routes");
}

bool own_load(struct tables *to, const struct own_task *task, struct routes *routes, struct reason *why)
{
	return load(to, task, routes, false, why);
}

/* Whether packets from a switch reach the one where a LID is. `arrives`: [switch] 1 where that is known; then also for those on
 * the way. Entries that are in force make no loop; the count of hops ends one all the same. */
static bool arrives_from(const struct tables *t, const struct live *live, uint32_t lid, uint32_t s, uint8_t *arrives)
{
	uint32_t here = s, hops = 0;

	while (!arrives[here]) {
		const uint8_t port = t->entry[(size_t)here * t->lids + lid];
		const struct live_switch *sw = &live->sw[here];

		if (!port || port > sw->ports || live->peer[sw->first_port + port] == NO_PEER || hops++ > live->switches)
			return false;
		here = live->peer[sw->first_port + port];
	}
	for (here = s; !arrives[here]; here = live->peer[live->sw[here].first_port + t->entry[(size_t)here * t->lids + lid]])
		arrives[here] = 1;
	return true;
}

/* Whether any host's packets are dropped on the way to any live node. Without memory: as if some were. */
static bool drops_some(const struct tables *t, const struct live *live)
{
	uint8_t *arrives = malloc(live->switches + 1);
	bool drops = !arrives;

	for (uint32_t d = 0; !drops && d < live_destinations(live); d++) {
		const struct live_destination at = live_destination(live, d);

		for (unsigned lid = at.low; lid && lid <= at.high && lid < t->lids; lid++) {
			memset(arrives, 0, live->switches);
			arrives[at.leaf] = 1;
			for (uint32_t s = 0; s < live->switches; s++)
				drops = drops || (t->fit.hosts[s] && !arrives_from(t, live, lid, s, arrives));
		}
	}
	free(arrives);
	return drops;
}

/* `drops`: routes of a repair that drops packets of hosts may be put in force. */
static bool load_verified(struct tables *to, const struct own_task *task, struct routes *routes, bool drops, struct reason *why)
{
	drops = drops && routes->amended && routes->amended->dropping;
	if (!load(to, task, routes, drops, why))
		return false;
	if (task->known && !verify_tables(task, to, why))
		return own_free(to), false;
	to->drops = (drops || to->put_off_count) && drops_some(to, task->live);
	*why = (struct reason){.text = ""};
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
	if (routes->numbers && routes->lanes == 1)
		repaired = repair(routes, task->live, task->ours ? task->known : NULL, unrepaired);
	if (repaired && repaired != routes)
		good = load_verified(to, task, repaired, true, unrepaired);
	routes_drop(repaired);
	return good || load_verified(to, task, routes, !task->settled, why);
}
