/*
 * Chooses what is repaired: the routes in force (repair_routes.c) or, if there are live switches that they do not have
 * (repair_match.h), a copy with rows and columns for these (extend.h), whose entries without a route are repaired like dead
 * ones. What was made of that copy is the plan to which later repairs return.
 */
#include "repair.h"

#include <string.h>

#include "extend.h"
#include "repair_match.h"
#include "routes_write.h"

/* From now on, what was made of an extended plan is the plan. */
static bool settle(struct routes *made, const struct routes *extended, const struct routes *before)
{
	struct amendment *a = made->amended;
	struct routes *plan = routes_copy(made);

	if (!plan)
		return false;
	memcpy(ROUTES_FILL(uint32_t, plan->far_ends), extended->far_ends,
	       (size_t)plan->switches * plan->wide * sizeof(*plan->far_ends)); /* those of moved cables, too */
	routes_drop(a->plan);
	a->plan = plan;
	a->repairs += before->amended ? before->amended->repairs : 0;
	return true;
}

/* Repairs routes after they were given rows for the live switches that they do not have. */
static struct routes *repair_extended(struct routes *now, const struct live *live, const struct known *known,
				      const struct matched *old, struct reason *why)
{
	struct routes *made = NULL, *extended = NULL;
	bool hopeless = true;

	for (int unseen = 1; (!made || hopeless) && unseen >= 0; unseen--) {
		struct matched matched = {.row = NULL};

		routes_drop(made);
		routes_drop(extended);
		made = NULL;
		extended = extend(now, live, old->row, unseen, why);
		if (!extended)
			break;
		if (matched_make(&matched, extended, live) && !matched.unknown)
			made = repair_routes(extended, live, known, &matched, &hopeless, why);
		matched_free(&matched);
	}
	if (made && made->amended && !settle(made, extended, now)) {
		routes_drop(made);
		made = NULL;
	}
	routes_drop(extended);
	return made;
}

struct routes *repair(struct routes *now, const struct live *live, const struct known *known, struct reason *why)
{
	struct routes *made = NULL;
	struct matched matched;
	bool hopeless;

	REASON(why, "no memory to repair the routes");
	if (matched_make(&matched, now->amended ? now->amended->plan : now, live))
		made = matched.unknown ? repair_extended(now, live, known, &matched, why) :
					 repair_routes(now, live, known, &matched, &hopeless, why);
	matched_free(&matched);
	return made;
}
