/* Puts routes that fit into OpenSM: hop counts, forwarding tables, and the row and column of each LID. */
#include <stdlib.h>
#include <string.h>

#include "bridge.h"

#define LIDS 0xc000 /* unicast LIDs end at 0xbfff */

/* Takes ownership of the contents of `live`, `sw` and `fit`, and a reference to `routes`; NULL without memory. */
struct install *install_new(struct live *live, osm_switch_t **sw, struct fit *fit,
			    struct routes *routes)
{
	struct install *i = calloc(1, sizeof(*i));

	if (i && routes->service_levels)
		i->place = calloc(LIDS, sizeof(*i->place));
	if (!i || (routes->service_levels && !i->place)) {
		free(i);
		fit_free(fit);
		return NULL;
	}
	i->live = *live;
	i->sw = sw;
	i->fit = *fit;
	i->routes = routes_hold(routes);
	return i;
}

void install_free(struct install *i)
{
	if (!i)
		return;
	live_free(&i->live);
	fit_free(&i->fit);
	routes_drop(i->routes);
	free(i->sw);
	free(i->place);
	free(i);
}

/*
 * OpenSM builds its multicast trees, and fallback engines their tables, from the hop count over every port of every switch
 * to every switch. The numbers are those of OpenSM's own step, but computed by one breadth-first search per switch instead
 * of repeated rounds over all neighbours.
 */
void install_hops(const struct install *i)
{
	const struct live *live = &i->live;
	uint8_t *hops = malloc(live->switches);
	uint32_t *queue = malloc(live->switches * sizeof(*queue));

	for (uint32_t target = 0; hops && queue && target < live->switches; target++) {
		const uint16_t lid = live->sw[target].lid_low;

		hops_to(live, target, hops, queue);
		osm_switch_set_hops(i->sw[target], lid, 0, 0);
		for (uint32_t s = 0; s < live->switches; s++)
			for (unsigned p = 1; p <= live->sw[s].ports; p++) {
				const uint32_t peer = live->peer[live->sw[s].first_port + p];

				if (peer != NO_PEER && hops[peer] < 254)
					osm_switch_set_hops(i->sw[s], lid, (uint8_t)p,
							    (uint8_t)(hops[peer] + 1));
			}
	}
	free(hops);
	free(queue);
}

static void set_place(struct install *i, unsigned lid, uint32_t row, uint32_t column,
		      unsigned offset)
{
	if (i->place && lid < LIDS)
		i->place[lid] = (struct lid_place){row, column, (uint8_t)offset, true};
}

static void fill_places(struct install *i)
{
	for (uint32_t d = 0; d < i->live.switches; d++) {
		const struct live_switch *to = &i->live.sw[d];

		for (unsigned lid = to->lid_low; lid && lid <= to->lid_high; lid++)
			set_place(i, lid, i->fit.row[d], i->routes->terminals + i->fit.row[d],
				  fit_offset(i->routes, lid, to->lid_low));
	}
	for (uint32_t t = 0; t < i->live.terminals; t++) {
		const struct live_terminal *to = &i->live.end[t];

		for (unsigned lid = to->lid_low; lid <= to->lid_high; lid++)
			set_place(i, lid, i->fit.row[to->leaf], i->fit.column[t],
				  fit_offset(i->routes, lid, to->lid_low));
	}
}

/* OpenSM has just allocated `new_lft` and filled it with "no route". */
static void fill_table(const struct install *i, uint32_t s)
{
	const struct routes *r = i->routes;
	osm_switch_t *sw = i->sw[s];

	for (uint32_t d = 0; d < i->live.switches; d++) {
		const struct live_switch *to = &i->live.sw[d];

		for (unsigned lid = to->lid_low; lid && lid <= to->lid_high && lid <= sw->max_lid_ho; lid++)
			sw->new_lft[lid] =
				routes_row(r, r->forwarding, fit_offset(r, lid, to->lid_low),
					   i->fit.row[s])[r->terminals + i->fit.row[d]];
	}
	for (uint32_t t = 0; t < i->live.terminals; t++) {
		const struct live_terminal *to = &i->live.end[t];

		for (unsigned lid = to->lid_low; lid <= to->lid_high && lid <= sw->max_lid_ho; lid++)
			sw->new_lft[lid] = fit_port(&i->fit, r, &i->live,
						    fit_offset(r, lid, to->lid_low), s, t);
	}
}

void install_tables(struct install *i)
{
	for (uint32_t s = 0; s < i->live.switches; s++)
		fill_table(i, s);
	if (i->place)
		fill_places(i);
	/* OpenSM's switches and names are valid only while its lock is held. */
	live_free(&i->live);
	free(i->sw);
	i->sw = NULL;
}
