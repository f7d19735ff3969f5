/*
 * A column that was walked needs no other walk if no entry of a live switch in it has changed, and each of them still leads
 * to the same switch. A switch that has come up since is looked at alone: its entry must lead to a switch that was there
 * before, and from there the old paths go on.
 */
#include "walked.h"

#include <stdlib.h>
#include <string.h>

void walked_free(struct walked *w)
{
	routes_drop(w->routes);
	free(w->up);
	free(w->far);
	free(w->arrives);
	memset(w, 0, sizeof(*w));
}

static bool has_same_nodes(const struct routes *a, const struct routes *b)
{
	return a == b ||
	       (a->switches == b->switches && a->terminals == b->terminals && a->wide == b->wide &&
		!memcmp(a->switch_guid, b->switch_guid, a->switches * sizeof(*a->switch_guid)) &&
		!memcmp(a->terminal_guid, b->terminal_guid, a->terminals * sizeof(*a->terminal_guid)) &&
		!memcmp(a->terminal_leaf, b->terminal_leaf, a->terminals * sizeof(*a->terminal_leaf)));
}

static void set_fabric(struct walked *w, const struct live *live, const uint32_t *row)
{
	const unsigned wide = w->routes->wide;

	memset(w->far, 0xff, (size_t)w->routes->switches * wide * sizeof(*w->far));
	for (uint32_t s = 0; s < live->switches; s++) {
		w->up[row[s]] = 1;
		for (unsigned p = 1; p <= live->sw[s].ports && p < wide; p++) {
			const uint32_t peer = live->peer[live->sw[s].first_port + p];

			if (peer != NO_PEER)
				w->far[(size_t)row[s] * wide + p] = row[peer];
		}
	}
}

/* Clears `arrives` where the entry of a switch that was up leads elsewhere now, or to no switch. */
static void clear_changed_ports(struct walked *w, const struct walked *last, uint32_t s, const uint8_t *entry,
				uint8_t *arrives)
{
	const uint32_t *far = w->far + (size_t)s * w->routes->wide;
	const uint32_t *before = last->far + (size_t)s * w->routes->wide;
	uint8_t changed[UINT8_MAX + 1] = {0}, any = 0;

	for (unsigned p = 1; p < w->routes->wide; p++)
		any |= changed[p] = far[p] != before[p];
	for (uint32_t d = 0; any && d < w->routes->columns; d++)
		arrives[d] &= !changed[entry[d]];
}

static void clear_changed_entries(const struct walked *w, const struct walked *last, unsigned offset, uint32_t s,
				  const uint8_t *entry, uint8_t *arrives)
{
	const uint8_t *before = routes_row(last->routes, last->routes->forwarding, offset, s);

	if (entry == before || !memcmp(entry, before, w->routes->columns))
		return;
	for (uint32_t d = 0; d < w->routes->columns; d++)
		arrives[d] &= entry[d] == before[d];
}

/* The same for a switch that has come up: its entry must lead to a switch that was up. */
static void clear_new_switch(struct walked *w, const struct walked *last, uint32_t s, const uint8_t *entry,
			     uint8_t *arrives)
{
	const struct routes *r = w->routes;
	uint8_t joins[UINT8_MAX + 1] = {0};

	for (unsigned p = 1; p < r->wide; p++) {
		const uint32_t far = w->far[(size_t)s * r->wide + p];

		joins[p] = far != ROUTES_NO_SWITCH && last->up[far];
	}
	for (uint32_t d = 0; d < r->columns; d++)
		arrives[d] &= joins[entry[d]];
}

bool walked_since(struct walked *w, const struct walked *last, struct routes *routes, const struct live *live,
		  const uint32_t *row)
{
	const size_t ports = (size_t)routes->switches * routes->wide, columns = (size_t)routes->offsets * routes->columns;

	*w = (struct walked){.routes = routes_hold(routes), .up = calloc(routes->switches, 1),
			     .far = malloc(ports * sizeof(*w->far)), .arrives = calloc(columns, 1)};
	if (!w->up || !w->far || !w->arrives) {
		walked_free(w);
		return false;
	}
	set_fabric(w, live, row);
	if (!last || !last->routes || !has_same_nodes(last->routes, routes))
		return true;
	for (unsigned o = 0; o < routes->offsets && o < last->routes->offsets; o++) {
		uint8_t *arrives = w->arrives + (size_t)o * routes->columns;

		memcpy(arrives, last->arrives + (size_t)o * routes->columns, routes->columns);
		for (uint32_t s = 0; s < routes->switches; s++) {
			const uint8_t *entry = routes_row(routes, routes->forwarding, o, s);

			if (w->up[s] && last->up[s]) {
				clear_changed_ports(w, last, s, entry, arrives);
				clear_changed_entries(w, last, o, s, entry, arrives);
			} else if (w->up[s]) {
				clear_new_switch(w, last, s, entry, arrives);
			}
		}
	}
	return true;
}
