/*
 * A column that was walked needs no other walk if no entry of a live switch in it has changed, and each of them still leads
 * to the same switch. Where some have changed, or a switch has come up, the paths from these switches are followed; only if
 * one of them does not reach the end, the whole column is walked.
 */
#include "walked.h"

#include <stdlib.h>
#include <string.h>

#include "certificate.h"

#define PATHS 4 /* followed for each column, on average */

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

/* One offset of a table that is compared with the one that was walked last. */
struct comparison {
	struct walked *w;
	const struct walked *last;
	unsigned offset;
	uint8_t *arrives;
	uint32_t left; /* paths that may still be followed; a walk over whole columns is quicker than many of them */
};

/* Whether a packet at `s` reaches the end. */
static bool reaches_end(struct walked *w, unsigned offset, uint32_t s, uint32_t column)
{
	const struct routes *r = w->routes;
	const uint32_t end = routes_end(r, column);

	for (uint32_t hops = 0; s != end; hops++) {
		const uint8_t port = routes_row(r, r->forwarding, offset, s)[column];

		if (port >= r->wide || hops == r->switches)
			return false;
		s = w->far[(size_t)s * r->wide + port];
		if (s == ROUTES_NO_SWITCH)
			return false;
		w->longest = hops >= w->longest ? hops + 1 : w->longest;
	}
	return true;
}

/*
 * The entry of `s`, or what is behind it, is not what it was. If every such switch reaches the end, all others do, too: their
 * old path reaches the end, or one of these.
 */
static void changed(struct comparison *c, uint32_t s, uint32_t column)
{
	if (!c->arrives[column])
		return;
	if (c->left)
		c->left--;
	else
		c->arrives[column] = 0;
	if (c->arrives[column] && !reaches_end(c->w, c->offset, s, column))
		c->arrives[column] = 0;
}

static void compare(struct comparison *c, uint32_t s)
{
	const struct routes *r = c->w->routes;
	const uint8_t *entry = routes_row(r, r->forwarding, c->offset, s);
	const uint8_t *before = routes_row(c->last->routes, c->last->routes->forwarding, c->offset, s);
	const uint32_t *far = c->w->far + (size_t)s * r->wide, *old = c->last->far + (size_t)s * r->wide;
	const bool is_new = !c->last->up[s], moved = entry != before && memcmp(entry, before, r->columns);
	uint8_t elsewhere[UINT8_MAX + 1] = {0}, any = is_new || moved;

	for (unsigned p = 1; p < r->wide; p++)
		any |= elsewhere[p] = far[p] != old[p];
	for (uint32_t d = 0; any && d < r->columns; d++)
		if (is_new || elsewhere[entry[d]] || entry[d] != before[d])
			changed(c, s, d);
}

bool walked_since(struct walked *w, const struct walked *last, struct routes *routes, const struct live *live,
		  const uint32_t *row)
{
	const size_t ports = (size_t)routes->switches * routes->wide, columns = (size_t)routes->offsets * routes->columns;
	struct comparison c;

	*w = (struct walked){.routes = routes_hold(routes), .up = calloc(routes->switches, 1),
			     .far = malloc(ports * sizeof(*w->far)), .arrives = calloc(columns, 1)};
	if (!w->up || !w->far || !w->arrives) {
		walked_free(w);
		return false;
	}
	set_fabric(w, live, row);
	if (!last || !last->routes || !has_same_nodes(last->routes, routes))
		return true;
	w->longest = last->longest;
	for (unsigned o = 0; o < routes->offsets && o < last->routes->offsets; o++) {
		uint8_t *arrives = w->arrives + (size_t)o * routes->columns;

		memcpy(arrives, last->arrives + (size_t)o * routes->columns, routes->columns);
		c = (struct comparison){w, last, o, arrives, PATHS * routes->columns};
		for (uint32_t s = 0; s < routes->switches; s++)
			if (w->up[s])
				compare(&c, s);
	}
	return true;
}
