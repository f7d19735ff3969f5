/*
 * Whether another routing must follow the one that is over, which the plugin then requests by itself. Without OpenSM's types, so
 * that the judge of repairs (tests/property/test_judged.py) runs the same code as events.c.
 */
#pragma once
#include "own.h"

struct follow {
	unsigned repairs; /* of the routes in force, when a routing was over last */
	bool settled;	  /* the last routing met no entries but those that were sent last, and set all that had waited */
};

/* At the start of a routing: `known` as in own.h, and how many LIDs the last one put off. What was put off is sent by this one,
 * so more may follow, even where all switches have confirmed and no older packets are left. */
void follow_begin(struct follow *f, const struct known *known, uint32_t put_off);
/* Once all switches have confirmed what was sent. */
bool follow_needed(struct follow *f, const struct tables *in_force);
