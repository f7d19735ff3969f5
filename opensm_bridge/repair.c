/*
 * Chooses what is repaired: the routes in force (repair_routes.c) or, if there are live switches that they do not have, a copy
 * with rows and columns for these (extend.h), whose entries without a route are repaired like dead ones. What was made of that
 * copy is the plan to which later repairs return.
 */
#include "repair.h"

#include "extend.h"
#include "routes_image.h"

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

static struct routes *repair_extended(struct routes *now, const struct live *live, const struct known *known, bool unseen,
				      bool *hopeless, struct reason *why)
{
	struct routes *extended = extend(now, live, unseen, why);
	struct routes *made = extended ? repair_routes(extended, live, known, hopeless, why) : NULL;

	routes_drop(extended);
	if (!made || !made->amended || settle(made, now))
		return made;
	routes_drop(made);
	return NULL;
}

struct routes *repair(struct routes *now, const struct live *live, const struct known *known, struct reason *why)
{
	struct routes *made;
	bool hopeless = false, known_all = true;

	REASON(why, "no memory to repair the routes");
	for (uint32_t s = 0; s < live->switches; s++)
		known_all = known_all && routes_switch(now, live->sw[s].guid) < now->switches;
	if (known_all)
		return repair_routes(now, live, known, &hopeless, why);
	made = repair_extended(now, live, known, true, &hopeless, why);
	if (!made || !hopeless)
		return made;
	routes_drop(made); /* hosts that may boot at the new switches ask for too much */
	return repair_extended(now, live, known, false, &hopeless, why);
}
