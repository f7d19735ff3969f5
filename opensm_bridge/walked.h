/*
 * What the last walk over all paths found (fit.c), and which columns must be walked again because the routes or the fabric
 * have changed since. So the work of one routing grows with what changed.
 */
#ifndef SAR_WALKED_H
#define SAR_WALKED_H
#include <stdbool.h>
#include <stdint.h>

#include "live.h"
#include "routes_file.h"

/* By rows and columns of `routes`. */
struct walked {
	struct routes *routes; /* NULL: nothing was walked */
	uint8_t *up;	       /* [switches] 1: the switch is live */
	uint32_t *far;	       /* [switches][wide] the switch behind a live cable, or ROUTES_NO_SWITCH */
	uint32_t longest;      /* no path that was walked has more hops */
	uint8_t *arrives;      /* [offsets][columns] 1: every live switch reaches the end, and no entry drops packets */
};

/* `row` is that of each live switch. Sets `w` to the live fabric, with `arrives` for the columns that `last` has walked and
 * in which every switch still reaches the end; false without memory. */
bool walked_since(struct walked *w, const struct walked *last, struct routes *routes, const struct live *live,
		  const uint32_t *row);
void walked_free(struct walked *w);

#endif
