/* Puts routes that fit into OpenSM: forwarding tables, hop counts, and the row and column of each LID. */
#include <stdlib.h>
#include <string.h>

#include "bridge.h"

#define NO_WAY 255
#define MOST_HOPS 254 /* the largest distance in OpenSM's tables */

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

/* Sets `hops` from every switch to `target`. `queue` has room for all switches. */
static void hops_to(const struct live *live, uint32_t target, uint8_t *hops, uint32_t *queue)
{
	uint32_t head = 0, tail = 0;

	memset(hops, NO_WAY, live->switches);
	hops[target] = 0;
	queue[tail++] = target;
	while (head < tail) {
		const uint32_t here = queue[head++];

		for (unsigned port = 1; port <= live->sw[here].ports; port++) {
			const uint32_t peer = live->peer[live->sw[here].first_port + port];

			if (peer == NO_PEER || hops[peer] != NO_WAY)
				continue;
			hops[peer] = hops[here] < MOST_HOPS ? (uint8_t)(hops[here] + 1) : MOST_HOPS;
			queue[tail++] = peer;
		}
	}
}

/* OpenSM has set all hop counts to "no way" before the routing. Without memory, multicast has no paths until the next one. */
void install_hops(const struct install *i)
{
	const struct live *live = &i->live;
	uint8_t *hops = malloc(live->switches + 1);
	uint32_t *queue = malloc((live->switches + 1) * sizeof(*queue));

	for (uint32_t t = 0; i->sw && hops && queue && t < live->switches; t++) {
		const uint16_t lid = live->sw[t].lid_low;

		hops_to(live, t, hops, queue);
		for (uint32_t s = 0; s < live->switches; s++) {
			const uint32_t *peer = live->peer + live->sw[s].first_port;

			/* This makes the row if OpenSM has none, and refuses a LID that it has no row for. */
			if (hops[s] == NO_WAY || osm_switch_set_hops(i->sw[s], lid, 0, hops[s]))
				continue;
			for (unsigned p = 1; p <= live->sw[s].ports; p++)
				if (peer[p] != NO_PEER && hops[peer[p]] < MOST_HOPS)
					i->sw[s]->hops[lid][p] = (uint8_t)(hops[peer[p]] + 1);
		}
	}
	free(hops);
	free(queue);
}

void install_forget_osm(struct install *i)
{
	if (!i)
		return;
	live_free(&i->live);
	free(i->sw);
	free(i->tables.entry);
	i->sw = NULL;
	i->tables.entry = NULL;
}
