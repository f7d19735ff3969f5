/*
 * The numbers of the channels to and from a new switch. What leaves it has a number below all others, and what leads to it
 * one above all others. So a packet from there may go on by any path that is in force, a packet to it may come by any, and
 * no path between other switches leads through it: whatever the fabric, nothing that is in force has to change, and no loop
 * and no credit loop can form. New switches that only other new ones lead to form further layers: what leaves a layer has a
 * smaller number than what leaves the one before it, and what leads to it a larger one. Channels within a layer have no
 * number and are not used.
 */
#include "extend.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "routes_image.h"

#define MOST_NODES 65535

struct extension {
	const struct routes *old;
	struct routes *new;
	const struct live *live;
	uint32_t *row;	    /* of each live switch, in the new routes */
	uint32_t *layer;    /* of each live switch; 0: it is in the old routes */
	uint32_t *order;    /* the new switches (live indices), by layer */
	uint32_t count, layers;
	uint32_t *switch_to; /* rows of the old routes in the new ones */
};

/* The neighbour behind a port of a live switch; NO_PEER if the old routes do not have that port of it. */
static uint32_t neighbour(const struct extension *e, uint32_t s, unsigned p)
{
	const uint32_t at = e->live->sw[s].first_port + p, peer = e->live->peer[at];

	if (peer == NO_PEER || e->layer[peer])
		return peer;
	return e->live->peer_port[at] <= e->old->switch_ports[routes_switch(e->old, e->live->sw[peer].guid)] ? peer : NO_PEER;
}

/* Sets `layer` and `order`; false if a new switch is not connected. */
static bool find_layers(struct extension *e, struct reason *why)
{
	const struct live *live = e->live;

	for (uint32_t s = 0; s < live->switches; s++)
		e->layer[s] = routes_switch(e->old, live->sw[s].guid) == e->old->switches ? UINT32_MAX : 0;
	for (bool more = true; more; e->layers += more) {
		const uint32_t first = e->count;

		for (uint32_t s = 0; s < live->switches; s++)
			for (unsigned p = 1; e->layer[s] == UINT32_MAX && p <= live->sw[s].ports; p++) {
				const uint32_t peer = neighbour(e, s, p);

				if (peer == NO_PEER || e->layer[peer] != e->layers)
					continue;
				e->layer[s] = e->layers + 1;
				e->order[e->count++] = s;
			}
		more = e->count > first;
	}
	for (uint32_t s = 0; s < live->switches; s++)
		if (e->layer[s] == UINT32_MAX)
			return REASON_OF(why, "stale", "stale: switch 0x%016" PRIx64 " (%.60s) is not in the routes file, "
					 "and no cable leads from there to a switch that is", live->sw[s].guid,
					 live->sw[s].name), false;
	return true;
}

/* The rows of old and new switches, in the order of their GUIDs. */
static void merge_switches(struct extension *e)
{
	const struct live *live = e->live;
	struct routes *new = e->new;
	uint64_t *all = ROUTES_FILL(uint64_t, new->switch_guid);

	memcpy(all, e->old->switch_guid, e->old->switches * sizeof(*all));
	for (uint32_t i = 0; i < e->count; i++)
		all[e->old->switches + i] = live->sw[e->order[i]].guid;
	qsort(all, new->switches, sizeof(*all), guid_order);
	for (uint32_t s = 0; s < e->old->switches; s++)
		e->switch_to[s] = routes_switch(new, e->old->switch_guid[s]);
	for (uint32_t s = 0; s < live->switches; s++)
		e->row[s] = routes_switch(new, live->sw[s].guid);
}

/* Whether hosts may boot at a new switch that bears none now. */
static bool may_bear_hosts(const struct extension *e, uint32_t s)
{
	const struct live_switch *sw = &e->live->sw[s];
	bool everywhere = true, beside = false;
	unsigned cables = 0;

	for (uint32_t i = 0; i < e->old->switches; i++)
		everywhere = everywhere && e->old->senders[i];
	for (unsigned p = 1; p <= sw->ports; p++) {
		const uint32_t peer = neighbour(e, s, p);

		cables += e->live->peer[sw->first_port + p] != NO_PEER;
		beside = beside || (peer != NO_PEER && !e->layer[peer] && e->new->senders[e->row[peer]]);
	}
	return everywhere || (!beside && 2 * cables <= sw->ports);
}

static void fill_nodes(struct extension *e, bool unseen)
{
	const struct routes *old = e->old;
	struct routes *new = e->new;
	uint8_t *senders = ROUTES_FILL(uint8_t, new->senders), *ports = ROUTES_FILL(uint8_t, new->switch_ports);

	memcpy(ROUTES_FILL(uint64_t, new->terminal_guid), old->terminal_guid, old->terminals * sizeof(*old->terminal_guid));
	for (uint32_t s = 0; s < old->switches; s++) {
		ports[e->switch_to[s]] = old->switch_ports[s];
		senders[e->switch_to[s]] = old->senders[s];
	}
	for (uint32_t t = 0; t < old->terminals; t++)
		ROUTES_FILL(uint32_t, new->terminal_leaf)[t] = e->switch_to[old->terminal_leaf[t]];
	for (uint32_t i = 0; i < e->count; i++) {
		ports[e->row[e->order[i]]] = e->live->sw[e->order[i]].ports;
		senders[e->row[e->order[i]]] = unseen && may_bear_hosts(e, e->order[i]);
	}
	for (uint32_t t = 0; t < e->live->terminals; t++)
		if (e->layer[e->live->end[t].leaf])
			senders[e->row[e->live->end[t].leaf]] = 1;
}

/* Copies the entries of the old routes. */
static void fill_table(const struct extension *e)
{
	const struct routes *old = e->old, *new = e->new;

	memset(ROUTES_FILL(uint8_t, new->forwarding), ROUTES_NO_ROUTE, (size_t)new->offsets * new->switches * new->columns);
	for (unsigned o = 0; o < old->offsets; o++)
		for (uint32_t s = 0; s < old->switches; s++) {
			const uint8_t *row = routes_row(old, old->forwarding, o, s);
			uint8_t *copy = ROUTES_FILL(uint8_t, routes_row(new, new->forwarding, o, e->switch_to[s]));

			memcpy(copy, row, old->terminals);
			for (uint32_t d = 0; d < old->switches; d++)
				copy[new->terminals + e->switch_to[d]] = row[old->terminals + d];
		}
}

static void fill_ports(struct extension *e)
{
	const struct routes *old = e->old;
	struct routes *new = e->new;

	memset(ROUTES_FILL(uint32_t, new->far_ends), 0xff, (size_t)new->switches * new->wide * sizeof(*new->far_ends));
	for (uint32_t s = 0; s < old->switches; s++)
		for (unsigned p = 0; p < old->wide; p++) {
			const size_t from = (size_t)s * old->wide + p, to = (size_t)e->switch_to[s] * new->wide + p;
			const uint32_t far = old->far_ends[from], number = old->numbers[from];

			ROUTES_FILL(uint32_t, new->loads)[to] = old->loads[from];
			ROUTES_FILL(uint32_t, new->numbers)[to] = number ? number + e->layers : 0;
			if (far != ROUTES_NO_SWITCH)
				ROUTES_FILL(uint32_t, new->far_ends)[to] = e->switch_to[far >> 8] << 8 | (far & 255);
		}
}

/* No cable of the plan is at this port any more, and no entry leads out by it, nor by the other end. */
static void forget_cable(struct extension *e, uint32_t s, unsigned port)
{
	struct routes *new = e->new;
	uint32_t *ends = ROUTES_FILL(uint32_t, new->far_ends);
	const uint32_t far = ends[(size_t)s * new->wide + port];

	for (unsigned o = 0; o < new->offsets; o++) {
		uint8_t *row = ROUTES_FILL(uint8_t, routes_row(new, new->forwarding, o, s));

		for (uint32_t d = 0; d < new->columns; d++)
			row[d] = row[d] == port ? ROUTES_NO_ROUTE : row[d];
	}
	ends[(size_t)s * new->wide + port] = ROUTES_NO_SWITCH;
	if (far != ROUTES_NO_SWITCH)
		forget_cable(e, far >> 8, far & 255);
}

/* The cables of the new switches. `most`: the largest number of a channel of the old routes. */
static void add_cables(struct extension *e, uint32_t most)
{
	struct routes *new = e->new;
	uint32_t *ends = ROUTES_FILL(uint32_t, new->far_ends), *numbers = ROUTES_FILL(uint32_t, new->numbers);

	for (uint32_t i = 0; i < e->count; i++)
		for (unsigned p = 1; p <= e->live->sw[e->order[i]].ports; p++) {
			const uint32_t s = e->order[i], peer = neighbour(e, s, p), layer = e->layer[s];
			const unsigned port = e->live->peer_port[e->live->sw[s].first_port + p];
			size_t here, there;

			if (peer == NO_PEER)
				continue;
			here = (size_t)e->row[s] * new->wide + p;
			there = (size_t)e->row[peer] * new->wide + port;
			if (!e->layer[peer])
				forget_cable(e, e->row[peer], port);
			ends[here] = e->row[peer] << 8 | port;
			ends[there] = e->row[s] << 8 | p;
			if (e->layer[peer] >= layer)
				continue;
			numbers[here] = e->layers - layer + 1;
			numbers[there] = most + e->layers + layer;
		}
}

static uint32_t largest_number(const struct routes *r)
{
	uint32_t most = 0;

	for (size_t i = 0; i < (size_t)r->switches * r->wide; i++)
		most = r->numbers[i] > most ? r->numbers[i] : most;
	return most;
}

/* The sizes, and an empty image. */
static bool begin(struct extension *e, struct reason *why)
{
	struct routes sizes = *e->old;

	sizes.switches += e->count;
	for (uint32_t i = 0; i < e->count; i++)
		if (e->live->sw[e->order[i]].ports >= sizes.wide)
			sizes.wide = e->live->sw[e->order[i]].ports + 1u;
	if (sizes.switches > MOST_NODES || sizes.wide > ROUTES_UNKNOWN ||
	    largest_number(e->old) > UINT32_MAX - 2 * e->layers - 1)
		return REASON_OF(why, "stale", "stale: %u switches are not in the routes file, more than can be added to it",
				 e->count), false;
	e->new = routes_blank(&sizes);
	return e->new != NULL;
}

static void fill(struct extension *e, bool unseen)
{
	struct routes *new = e->new;

	merge_switches(e);
	fill_nodes(e, unseen);
	fill_table(e);
	fill_ports(e);
	add_cables(e, largest_number(e->old));
	for (unsigned o = 0; o < new->offsets; o++)
		for (uint32_t i = 0; i < e->count; i++) {
			const uint32_t s = e->row[e->order[i]];

			ROUTES_FILL(uint8_t, routes_row(new, new->forwarding, o, s))[new->terminals + s] = 0;
		}
}

struct routes *extend(const struct routes *routes, const struct live *live, bool unseen, struct reason *why)
{
	const uint32_t count = live->switches;
	uint32_t *room = calloc((size_t)3 * count + routes->switches + 1, sizeof(*room));
	struct extension e = {.old = routes, .live = live, .row = room, .layer = room + count, .order = room + 2 * count,
			      .switch_to = room + 3 * count};

	REASON(why, "no memory to add switches to the routes");
	if (room && find_layers(&e, why) && begin(&e, why))
		fill(&e, unseen);
	free(room);
	return e.new;
}
