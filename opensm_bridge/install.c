/* Puts routes that fit into OpenSM: hop counts, forwarding tables, and the row and column of each LID. */
#include <stdlib.h>
#include <string.h>

#include "bridge.h"

#define LIDS 0xc000 /* unicast LIDs end at 0xbfff */
#define HOPS_AT_ONCE 16

static uint32_t use_lids(const struct install *i, struct lid_use *use, uint32_t count, unsigned low, unsigned high,
			 uint32_t column)
{
	for (unsigned lid = low; lid && lid <= high; lid++) {
		if (use)
			use[count] = (struct lid_use){column, (uint16_t)lid, (uint8_t)fit_offset(i->routes, lid, low)};
		count++;
	}
	return count;
}

/* Lists all LIDs, unless `use` is NULL; returns their number. */
static uint32_t list_lids(const struct install *i, struct lid_use *use)
{
	const struct live *live = &i->live;
	uint32_t count = 0;

	for (uint32_t s = 0; s < live->switches; s++)
		count = use_lids(i, use, count, live->sw[s].lid_low, live->sw[s].lid_high,
				 i->routes->terminals + i->fit.row[s]);
	for (uint32_t t = 0; t < live->terminals; t++)
		count = use_lids(i, use, count, live->end[t].lid_low, live->end[t].lid_high, i->fit.column[t]);
	return count;
}

/* Takes ownership of the contents of `live`, `sw` and `fit`, and a reference to `routes`; NULL without memory. */
struct install *install_new(struct live *live, osm_switch_t **sw, struct fit *fit,
			    struct routes *routes)
{
	struct install *i = calloc(1, sizeof(*i));

	if (i) {
		i->live = *live;
		i->fit = *fit;
		i->routes = routes;
		i->uses = list_lids(i, NULL);
		i->use = malloc((i->uses + 1) * sizeof(*i->use));
	}
	if (i && routes->service_levels)
		i->place = calloc(LIDS, sizeof(*i->place));
	if (!i || !i->use || (routes->service_levels && !i->place)) {
		if (i)
			free(i->use), free(i->place);
		free(i);
		fit_free(fit);
		return NULL;
	}
	(void)list_lids(i, i->use);
	i->sw = sw;
	routes_hold(routes);
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
	free(i->use);
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
void install_hops(const struct install *i, struct hops *hops)
{
	const struct live *live = &i->live;

	if (!i->sw || !hops_update(hops, live))
		return; /* multicast then has no paths until the next routing */
	/* A few targets at a time: OpenSM has a row for each switch and target, and those of near LIDs are near. */
	for (uint32_t first = 0; first < live->switches; first += HOPS_AT_ONCE)
		for (uint32_t s = 0; s < live->switches; s++)
			for (uint32_t t = first; t < live->switches && t < first + HOPS_AT_ONCE; t++)
				set_hops(live, i->sw[s], s, live->sw[t].lid_low, hops_of(hops, t));
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
	const uint8_t *row[UINT8_MAX + 1];

	for (unsigned o = 0; o < r->offsets; o++)
		row[o] = routes_row(r, r->forwarding, o, i->fit.row[s]);
	for (uint32_t n = 0; n < i->uses; n++)
		if (i->use[n].lid <= sw->max_lid_ho)
			sw->new_lft[i->use[n].lid] = row[i->use[n].offset][i->use[n].column];
}

/* A leaf switch delivers to its terminals at the ports where they are now. */
static void fill_last_hops(const struct install *i)
{
	for (uint32_t t = 0; t < i->live.terminals; t++) {
		const struct live_terminal *to = &i->live.end[t];
		osm_switch_t *sw = i->sw[to->leaf];

		for (unsigned lid = to->lid_low; lid <= to->lid_high && lid <= sw->max_lid_ho; lid++)
			sw->new_lft[lid] = to->leaf_port;
	}
}

void install_tables(struct install *i)
{
	for (uint32_t s = 0; s < i->live.switches; s++)
		fill_table(i, s);
	fill_last_hops(i);
	if (i->place)
		fill_places(i);
	free(i->use);
	i->use = NULL;
}

void install_forget_osm(struct install *i)
{
	if (!i)
		return;
	live_free(&i->live);
	free(i->sw);
	i->sw = NULL;
}
