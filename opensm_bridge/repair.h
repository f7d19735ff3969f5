/*
 * Changes routes where the live fabric differs from the one they were made for: only the entries that must change, along
 * rising numbers of the certificate (certificate.h), so that what is in force stays free of loops and of credit loops at
 * every moment, whichever switch is rewritten first.
 */
#ifndef SAR_REPAIR_H
#define SAR_REPAIR_H
#include "live.h"
#include "routes_file.h"

/*
 * The routes `now`, which must have numbers that hold, for the live fabric: `now` itself (another reference) if nothing
 * must change, or an amended copy. NULL and `why` if the certificate does not apply to this fabric, or without memory.
 * Whether every live node is reached, fit.c says.
 */
struct routes *repair(struct routes *now, const struct live *live, struct reason *why);

#endif
