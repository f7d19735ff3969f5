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

bool own_load(struct tables *to, const struct own_task *task, struct routes *routes, struct reason *why)
{
	*to = (struct tables){.lids = task->lids};
	if (!fit_find(&to->fit, routes, task->live, why)) {
		own_free(to);
		return false;
	}
	to->entry = verify_tables(routes, task->live, &to->fit, task->lids);
	to->put_off = calloc(task->lids + 1, 1);
	if (!to->entry || !to->put_off) {
		own_free(to);
		return REASON(why, "no memory to install the routes"), false;
	}
	to->routes = routes_hold(routes);
	return true;
}

static bool load_verified(struct tables *to, const struct own_task *task, struct routes *routes, struct reason *why)
{
	if (!own_load(to, task, routes, why))
		return false;
	if (task->known &&
	    !verify_routes(&(struct verify_task){.routes = routes, .live = task->live, .fit = &to->fit, .known = task->known,
						 .ours = task->ours, .tables = to->entry, .put_off = to->put_off,
						 .lids = to->lids}, why)) {
		own_free(to);
		return false;
	}
	for (uint32_t lid = 0; lid < to->lids; lid++)
		to->put_off_count += to->put_off[lid] != 0;
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
	 * **Weak spot:** when OpenSM starts or takes over, routes.sar counts as what the switches have, since the agent writes it once it
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
		good = load_verified(to, task, repaired, unrepaired);
	routes_drop(repaired);
	return good || load_verified(to, task, routes, why);
}
