/*
 * Chooses what is repaired: the routes in force (repair_routes.c) or, if there are live switches that they do not have
 * (repair_match.h), a copy with rows and columns for these (extend.h), whose entries without a route are repaired like dead
 * ones. What was made of that copy is the plan to which later repairs return.
 */
#include "repair.h"

#include "extend.h"
#include "repair_routes.h"
#include "routes_write.h"

/* From now on, what was made of an extended plan is the plan. */
static bool settle(struct routes *made, const struct routes *before)
{
	struct amendment *a = made->amended;
	struct routes *plan = routes_copy(made);

	if (!plan)
		return false;
	routes_drop(a->plan);
	a->plan = plan;
	a->repairs += before->amended ? before->amended->repairs : 0;
	return true;
}

/* Repairs routes after they were given rows for the live switches that they do not have. */
static struct routes *repair_extended(struct routes *now, const struct live *live, const struct matched *old,
				      struct reason *why)
{
	struct routes *made = NULL;
	bool whole = false;

	for (int unseen = 1; !whole && unseen >= 0; unseen--) {
		struct routes *extended = extend(now, live, old->row, unseen, why);
		struct matched matched = {.row = NULL};
		const struct repair_task task = {live, &matched, true};
		bool hopeless = true;

		routes_drop(made);
		made = NULL;
		if (!extended)
			break;
		if (matched_make(&matched, extended, live) && !matched.unknown)
			made = repair_routes(extended, &task, &hopeless, why);
		matched_free(&matched);
		routes_drop(extended);
		whole = made && !hopeless;
	}
	if (!made || (made->amended && settle(made, now)))
		return made;
	routes_drop(made);
	return NULL;
}

struct routes *repair(struct routes *now, const struct live *live, struct reason *why)
{
	struct routes *plan = now->amended ? now->amended->plan : now, *made = NULL;
	struct matched matched;
	const struct repair_task task = {live, &matched, now->amended && now->amended->later};
	bool hopeless;

	REASON(why, "no memory to repair the routes");
	if (matched_make(&matched, plan, live))
		made = matched.unknown ? repair_extended(now, live, &matched, why) :
					 repair_routes(now, &task, &hopeless, why);
	matched_free(&matched);
	return made;
}
