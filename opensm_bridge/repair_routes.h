/* The repair of routes that have a row for every live switch. */
#ifndef SAR_REPAIR_ROUTES_H
#define SAR_REPAIR_ROUTES_H
#include "repair_match.h"

struct repair_task {
	const struct live *live;
	struct matched *matched; /* with the plan of the routes; the result takes the list of replaced switches from it */
	bool holes; /* entries without a route are to be repaired, too */
};

/* As repair() (repair.h). `hopeless`: packets of some hosts are dropped for longer than until the next repair. */
struct routes *repair_routes(struct routes *now, const struct repair_task *task, bool *hopeless, struct reason *why);

#endif
