/* What repair_column.c and repair_paths.c work on: one column, which is one destination in one LID offset. Routes in one lane;
 * switches are the rows of the file. */
#pragma once
#include <stdbool.h>

#include "known.h"
#include "routes_file.h"

#define NO_ENTRY ROUTES_NO_ROUTE
#define OTHERS (1 + OLDERS) /* tables beside the one sent last: unconfirmed entries, and those that packets may have followed */

struct channel {
	uint32_t number, s;
	uint8_t port;
};

struct repair_switch {
	uint8_t up, lost; /* it is live; nothing that it was sent is in force, as it has just come up */
	uint8_t sends;	  /* it is live, and hosts are there or may be */
	/* In one column: */
	uint8_t inside;		  /* it is a member */
	uint8_t reach;		  /* enum reach: whether the new entries lead to the end */
	uint8_t passed;		  /* packets of hosts may leave by entries in force */
	uint32_t arrive;	  /* the largest number by which they arrive */
	uint32_t low;		  /* the least number by which packets may leave by entries in force */
	uint32_t number, stamped; /* see repair_rising(); valid where `stamped` is `stamp` */
	uint8_t needed;		  /* packets of hosts pass, by entries in force or by those chosen */
	uint32_t need;		  /* the largest number by which the chosen entries lead there */
};

/* What is the same for all columns, and room for one column. */
struct repair_state {
	const struct routes *plan;
	uint32_t switches, wide;
	struct repair_switch *at; /* [switches] */
	uint32_t *far;	      /* [switches][wide] far end of a live cable that is where the plan has it; else ROUTES_NO_SWITCH */
	uint64_t *added;      /* [switches][wide] load that this repair has added, in the unit of `loads` */
	uint32_t *uses;	      /* [switches][wide] entries of suspects by port, in this offset */
	uint32_t *suspect, suspects; /* live switches at which a column may need other entries */

	uint32_t column, end;
	bool covered;	/* hosts send to the column */
	bool everywhere; /* count with packets of hosts at every switch: new paths may then lead where none pass now */
	bool clean;	/* packets can meet no entry but those of `now`: confirmed everywhere, and older packets are gone */
	const uint8_t *now, *planned;	 /* [switches] the column that was sent last, and that of the plan */
	const uint8_t *other[OTHERS];	 /* [switches] what packets may meet besides; NO_ENTRY from the first that has none on */
	uint8_t *new;			 /* [switches] the result */
	uint32_t later;			 /* result: entries that may be set once the new ones are confirmed */

	/* The switches whose path may change. All others, and all on their paths, keep their entries. */
	uint32_t *member, members;
	uint32_t stamp;
	uint32_t *broken, broken_count, *order, order_count;
	uint32_t *chain;
	struct channel *sorted; /* [switches * wide] */
};

enum reach { UNKNOWN, FOLLOWED, ENDLESS, FOUND, LEADS };

static inline uint32_t repair_far(const struct repair_state *x, uint32_t s, uint8_t port)
{
	return port < x->wide ? x->far[(size_t)s * x->wide + port] : ROUTES_NO_SWITCH;
}
