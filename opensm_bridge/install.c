/* Puts routes that fit into OpenSM: hop counts, forwarding tables, and the row and column of each LID. */
#include <stdlib.h>
#include <string.h>

#include "bridge.h"

#define LIDS 0xc000 /* unicast LIDs end at 0xbfff */

/* Takes ownership of the contents of `live`, `sw` and `tables`; NULL without memory. */
struct install *install_new(struct live *live, osm_switch_t **sw, struct tables *tables)
{
	struct install *i = calloc(1, sizeof(*i));

	if (i && tables->routes->service_levels)
		i->place = calloc(LIDS, sizeof(*i->place));
	if (!i || (tables->routes->service_levels && !i->place)) {
		free(i);
		own_free(tables);
		return NULL;
	}
	i->live = *live;
	i->sw = sw;
	i->tables = *tables;
	i->routes = tables->routes;
	return i;
}

void install_free(struct install *i)
{
	if (!i)
		return;
	live_free(&i->live);
	own_free(&i->tables);
	free(i->sw);
	free(i->place);
	free(i);
}

/* Of switch `s`, to the switch with this LID; `count`: of all switches to it. */
static void set_hops(const struct live *live, osm_switch_t *sw, uint32_t s, uint16_t lid, const uint8_t *count)
{
	const uint32_t *peer = live->peer + live->sw[s].first_port;
	uint8_t *row;

	/* This makes the row if OpenSM has none, and refuses a LID that it has no row for. */
	if (count[s] == HOPS_UNREACHABLE || osm_switch_set_hops(sw, lid, 0, count[s]))
		return;
	row = sw->hops[lid];
	for (unsigned p = 1; p <= live->sw[s].ports; p++)
		if (peer[p] != NO_PEER && count[peer[p]] < HOPS_MOST)
			row[p] = (uint8_t)(count[peer[p]] + 1);
}

/*
 * OpenSM builds its multicast trees, and fallback engines their tables, from the hop count over every port of every switch
 * to every switch. The numbers are those of OpenSM's own step. OpenSM has set all of them to "no path" before the routing.
 */
void install_hops(const struct install *i)
{
	const struct live *live = &i->live;
	uint8_t *count = malloc(live->switches + 1);
	uint32_t *queue = malloc((live->switches + 1) * sizeof(*queue));

	/* Without memory, multicast has no paths until the next routing. */
	for (uint32_t t = 0; i->sw && count && queue && t < live->switches; t++) {
		hops_to(live, t, count, queue);
		for (uint32_t s = 0; s < live->switches; s++)
			set_hops(live, i->sw[s], s, live->sw[t].lid_low, count);
	}
	free(count);
	free(queue);
}

static void fill_places(struct install *i)
{
	const struct fit *fit = &i->tables.fit;

	for (uint32_t d = 0; d < live_destinations(&i->live); d++) {
		const struct live_destination to = live_destination(&i->live, d);

		for (unsigned lid = to.low; lid && lid <= to.high && lid < LIDS; lid++)
			i->place[lid] = (struct lid_place){fit->row[to.leaf], fit_column(fit, i->routes, &i->live, d),
							   (uint8_t)fit_offset(i->routes, lid, to.low), true};
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
	if (i->place)
		fill_places(i);
	free(i->tables.entry);
	i->tables.entry = NULL;
}

void install_forget_osm(struct install *i)
{
	if (!i)
		return;
	live_free(&i->live);
	free(i->sw);
	i->sw = NULL;
}
