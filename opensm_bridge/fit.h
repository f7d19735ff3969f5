/* Whether routes fit the live fabric, and which of their rows and columns serve which live node. */
#ifndef SAR_FIT_H
#define SAR_FIT_H
#include <stdbool.h>
#include <stdint.h>

#include "live.h"
#include "reason.h"
#include "routes_file.h"

struct fit {
	uint32_t *row;	  /* of each live switch */
	uint32_t *column; /* of each live terminal; a switch's column for one the file does not know */
	uint32_t unknown, vanished;
};

/* False, and why, unless every live node reaches every live node over live links without a loop. */
bool fit_find(struct fit *fit, const struct routes *routes, const struct live *live,
	      struct reason *why);
void fit_free(struct fit *fit);

/* The egress port at live switch `s` for live terminal `t`. */
static inline uint8_t fit_port(const struct fit *fit, const struct routes *routes,
			       const struct live *live, unsigned offset, uint32_t s, uint32_t t)
{
	if (live->end[t].leaf == s)
		return live->end[t].leaf_port;
	return routes_row(routes, routes->forwarding, offset, fit->row[s])[fit->column[t]];
}

/* Port LIDs beyond the offsets that the file has repeat its offset 0. */
static inline unsigned fit_offset(const struct routes *routes, unsigned lid, unsigned lid_low)
{
	return lid - lid_low < routes->offsets ? lid - lid_low : 0;
}

#endif
