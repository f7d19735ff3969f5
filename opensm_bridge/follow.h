/*
 * Whether another routing must follow the one that is over, which the plugin then requests by itself. Without OpenSM's types, so
 * that the judge of repairs (tests/property/test_judged.py) runs the same code as events.c.
 */
#pragma once
#include "own.h"

/* Whether a routing meets no entries but those that were sent last, and the one before it, which put off so many LIDs, has set all
 * that had waited. What was put off is sent by this routing, so more may follow. `known` as in own.h. */
bool follow_settled(const struct known *known, uint32_t put_off);
/* Once all switches have confirmed what was sent; `settled`: before this routing. */
bool follow_needed(bool settled, const struct tables *in_force);
