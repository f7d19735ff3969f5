/* Whether routes fit the live fabric, and which of their rows and columns belong to which live node. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "live.h"
#include "reason.h"
#include "routes_file.h"

struct fit {
	uint32_t *row;	  /* of each live switch */
	uint32_t *column; /* of each live terminal; the column of its leaf switch if the file does not have it */
	uint8_t *hosts, *sends; /* of each live switch; 1: it has live terminals; packets of hosts may begin there */
	uint32_t unknown, vanished; /* live terminals not in the file; terminals of the file that are gone */
	uint32_t longest;	    /* no path has more hops */
};

/*
 * False and `why` unless every live node reaches every other over live links, without a loop. Where the routes have one lane and a
 * certificate, numbers must rise along these paths from all switches where hosts may be.
 */
bool fit_find(struct fit *fit, const struct routes *routes, const struct live *live, struct reason *why);
void fit_free(struct fit *fit);

/* The column of a destination (live.h). */
static inline uint32_t fit_column(const struct fit *fit, const struct routes *r, const struct live *live, uint32_t d)
{
	return d < live->switches ? r->terminals + fit->row[d] : fit->column[d - live->switches];
}

/* A LID beyond the offsets of the file uses offset 0. */
static inline unsigned fit_offset(const struct routes *routes, unsigned lid, unsigned lid_low)
{
	return lid - lid_low < routes->offsets ? lid - lid_low : 0;
}
