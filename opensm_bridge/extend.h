/* Adds switches to routes that do not have them: those that come back after a plan was made without them, and new ones. */
#pragma once
#include "live.h"
#include "routes_file.h"

/*
 * A copy of `routes`, which must have numbers and one lane, with all live switches. The new rows and columns are without a route
 * (255), as are entries by ports whose cables now end at a new switch; repair.h gives them one along rising numbers. Hosts at new
 * switches are reached like these. `unseen`: the proof is to cover hosts at the new switches that may bear some, not only at those
 * that do. NULL and `why` if a new switch has no cable to any other, or without memory.
 */
struct routes *extend(const struct routes *routes, const struct live *live, bool unseen, struct reason *why);
