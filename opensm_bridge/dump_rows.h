/* The entries of a dump: from the known contents of the switches' tables (known.h) to rows of a routes file. */
#ifndef SAR_DUMP_ROWS_H
#define SAR_DUMP_ROWS_H
#include "bridge.h"

/*
 * What a routing that waits for the agent assumes of a switch that OpenSM takes for reset, since one of its cables has died,
 * or that has come up: the first has what it confirmed before, as for a repair (repair.h); the second has no routes.
 */
struct assumed {
	bool used;
	const struct routes *own;
	const uint32_t *column; /* for each column of the dump, the one of `own`, or own->columns */
};

/* For each column of a dump, the one of `own`, from malloc: a host that `own` does not know was routed like its leaf switch
 * (fit.h). NULL without memory. */
uint32_t *dump_own_columns(const struct live *live, const struct routes *own);

/* Fills forwarding, and `had` and service levels if `r` has them. False without memory. */
bool dump_fill_tables(struct bridge *b, struct routes *r, const struct live *live, osm_switch_t **sw,
		      const struct assumed *assumed);

#endif
