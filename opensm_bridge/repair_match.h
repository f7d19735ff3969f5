/* Which row of the routes each live switch has. */
#ifndef SAR_REPAIR_MATCH_H
#define SAR_REPAIR_MATCH_H
#include "live.h"
#include "routes_file.h"

struct matched {
	uint32_t *row;	       /* [live switches], or ROUTES_NO_SWITCH */
	uint8_t *up;	       /* [switches of the routes] 1: it is live */
	uint32_t unknown, first; /* how many live switches have no row, and the first of them */
	uint32_t replaced, *replaced_row; /* rows whose place another switch has taken */
	uint64_t *replaced_by;
};

/* `routes` are those of a file, without amendments; false without memory. Then, too, matched_free() is due. */
bool matched_make(struct matched *m, const struct routes *routes, const struct live *live);
void matched_free(struct matched *m);

#endif
