/*
 * Whether the plugin's own routes may be put in force without a proof by the agent: by other code than that which makes a
 * repair, and over what each switch may have, whoever sent it.
 */
#pragma once
#include "fit.h"
#include "known.h"

/* The tables that routes which fit make of each switch, by LID below `lids`: uint8[switches][lids]; NULL without memory. */
uint8_t *verify_tables(const struct routes *r, const struct live *live, const struct fit *fit, uint32_t lids);

struct verify_task {
	const struct routes *routes;
	const struct live *live;
	const struct fit *fit;
	const struct known *known; /* of the same switches */
	bool ours;		   /* the tables that were sent last are the plugin's */
	uint8_t *tables;	   /* verify_tables() */
	uint8_t *put_off;	   /* result, by LID: LID_UNROUTED, LID_KEPT, or 0 as before */
	uint32_t lids;		   /* of both, and of `known` */
};

enum { LID_UNROUTED = 1, LID_KEPT };

/*
 * False and `why` if a packet may loop or close a credit
 * loop while switches have their entries from any of the tables known and from these, which fit (fit.h). Where only packets of older tables are the
 * cause, the LID keeps in `tables` what was sent last, and where it has moved to another switch, it is left without routes, until
 * the old ones are gone.
 */
bool verify_routes(const struct verify_task *task, struct reason *why);
