/* Puts routes that fit into OpenSM: forwarding tables, and the row and column of each LID. */
#include <stdlib.h>
#include <string.h>

#include "bridge.h"

void install_free(struct install *i)
{
	if (!i)
		return;
	live_free(&i->live);
	own_free(&i->tables);
	free(i->sw);
	free(i);
}

static void fill_places(struct install *i)
{
	const struct fit *fit = &i->tables.fit;
	const struct routes *r = i->tables.routes;

	for (uint32_t d = 0; d < live_destinations(&i->live); d++) {
		const struct live_destination to = live_destination(&i->live, d);

		for (unsigned lid = to.low; lid && lid <= to.high && lid < UNICAST_LIDS; lid++)
			i->place[lid] = (struct lid_place){fit->row[to.leaf], fit_column(fit, r, &i->live, d),
							   (uint8_t)fit_offset(r, lid, to.low), true};
	}
}

/* OpenSM has just allocated `new_lft` and filled it with "no route". **Weak spot:** that it has room for `max_lid_ho` + 1 entries,
 * and that this LID is of this routing, is read from 3.3.23; otherwise this would write past it, or leave LIDs without a route. */
void install_tables(struct install *i)
{
	for (uint32_t s = 0; s < i->live.switches; s++) {
		osm_switch_t *sw = i->sw[s];
		const uint32_t lids = sw->max_lid_ho < i->tables.lids ? sw->max_lid_ho + 1u : i->tables.lids;

		memcpy(sw->new_lft, i->tables.entry + (size_t)s * i->tables.lids, lids);
	}
	if (i->tables.routes->service_levels)
		fill_places(i);
}

void install_forget_osm(struct install *i)
{
	live_free(&i->live);
	free(i->sw);
	free(i->tables.entry);
	i->sw = NULL;
	i->tables.entry = NULL;
}
