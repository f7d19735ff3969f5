/*
 * What the plugin puts in force by itself, without OpenSM's types: routes that were in force, repaired if need be, once they are
 * verified; and the tables that routes make of each switch.
 */
#pragma once
#include "fit.h"
#include "known.h"

struct tables {
	struct routes *routes; /* a reference; NULL: none may be put in force */
	struct fit fit;
	uint32_t lids;
	uint8_t *entry;	   /* [switches][lids] */
	uint8_t *put_off; /* [lids] its routes wait until older ones are gone: LID_UNROUTED, LID_KEPT, or 0 (verify.h) */
	uint32_t put_off_count;
	bool step;  /* `routes` were made by this routing: a repair of those in force */
	bool drops; /* packets of a live host to a live node are dropped */
};

enum { LID_UNROUTED = 1, LID_KEPT };

struct own_task {
	const struct live *live;
	const struct known *known; /* of the same switches; NULL: nothing is known of any */
	bool assumed;		   /* if nothing is known, the switches are assumed to have these routes */
	bool held;		   /* only routes that the switches have: another subnet manager was master meanwhile */
	bool settled;		   /* nothing is left that a later routing waits for (follow.h) */
	bool ours;		   /* the tables that were sent last are the plugin's */
	uint32_t lids;		   /* those of `known`, or more than any port has */
};

/* Tables of routes that the agent has proved; false and `why` if they do not fit. */
bool own_load(struct tables *to, const struct own_task *task, struct routes *routes, struct reason *why);

/* The same for routes that were in force; not where nothing is known, unless `assumed`, nor others than those that are `held`. `unrepaired` says why a repair of them was not used; "" if
 * none was needed. Routes that drop packets of live hosts are put in force only as a step after which another one follows. */
bool own_choose(struct tables *to, const struct own_task *task, struct routes *routes, struct reason *unrepaired,
		struct reason *why);
void own_free(struct tables *t);
