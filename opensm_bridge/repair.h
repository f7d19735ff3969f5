/*
 * Changes routes where the live fabric differs from the one they were made for: only the entries that must change, along
 * rising numbers of the certificate (certificate.h), so that what is in force stays free of loops and of credit loops at
 * every moment, whichever switch is rewritten first. For routes in one lane; others are repaired by the agent.
 *
 * What a repair makes is verified by other code before it is used: fit.h and verify.h.
 */
#pragma once
#include "known.h"
#include "live.h"
#include "routes_file.h"

/*
 * The routes `now`, which must have one lane and numbers that hold, for the live fabric: `now` itself (another reference) if
 * nothing must change, or an amended copy. `known`: what switches may have besides, and which tables packets on their way may
 * have followed, if it is tables of `now`; NULL if nothing is known of any switch, or if other tables are in force. NULL and
 * `why` if they do not have a live switch, or without memory.
 */
struct routes *repair(struct routes *now, const struct live *live, const struct known *known, struct reason *why);
