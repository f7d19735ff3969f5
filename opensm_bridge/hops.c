/*
 * Hop counts by breadth-first search, and the test of which of them a change of the fabric leaves as they are.
 *
 * The counts to a target still hold if each switch that has lost a cable has a neighbour that is one hop nearer, and if no
 * new cable joins two switches whose counts differ by more than one: then every switch has a path of its count, and no
 * shorter one.
 */
#include "hops.h"

#include <stdlib.h>
#include <string.h>

void hops_free(struct hops *h)
{
	free(h->guid);
	free(h->peer);
	free(h->count);
	memset(h, 0, sizeof(*h));
}

static uint32_t ports_of(const struct live *live)
{
	uint32_t most = 0;

	for (uint32_t s = 0; s < live->switches; s++)
		if (live->sw[s].first_port + live->sw[s].ports + 1u > most)
			most = live->sw[s].first_port + live->sw[s].ports + 1u;
	return most;
}

static bool has_same_switches(const struct hops *h, const struct live *live, uint32_t ports)
{
	if (!h->count || h->switches != live->switches || h->ports != ports)
		return false;
	for (uint32_t s = 0; s < live->switches; s++)
		if (h->guid[s] != live->sw[s].guid)
			return false;
	return true;
}

static bool start_over(struct hops *h, const struct live *live, uint32_t ports)
{
	const size_t switches = live->switches;

	hops_free(h);
	h->guid = calloc(switches + 1, sizeof(*h->guid));
	h->peer = calloc((size_t)ports + 1, sizeof(*h->peer));
	h->count = malloc(switches * switches + 1);
	if (!h->guid || !h->peer || !h->count) {
		hops_free(h);
		return false;
	}
	h->switches = live->switches;
	h->ports = ports;
	for (uint32_t s = 0; s < live->switches; s++)
		h->guid[s] = live->sw[s].guid;
	return true;
}

/* Whether the counts to a target hold at a switch whose cable at one port has changed. */
static bool holds_at(const struct live *live, const uint8_t *count, uint32_t s, uint32_t peer)
{
	const struct live_switch *sw = &live->sw[s];

	if (count[s] >= HOPS_MOST || (peer != NO_PEER && count[peer] >= HOPS_MOST))
		return false;
	if (peer != NO_PEER && abs((int)count[s] - (int)count[peer]) > 1)
		return false;
	for (unsigned p = 1; count[s] && p <= sw->ports; p++) {
		const uint32_t near = live->peer[sw->first_port + p];

		if (near != NO_PEER && count[near] + 1 == count[s])
			return true;
	}
	return !count[s];
}

bool hops_update(struct hops *h, const struct live *live)
{
	const uint32_t ports = ports_of(live);
	const bool kept = has_same_switches(h, live, ports);
	uint32_t *queue = malloc((live->switches + 1) * sizeof(*queue));
	uint8_t *search = calloc(live->switches + 1, 1); /* by target */

	if (!queue || !search || (!kept && !start_over(h, live, ports))) {
		hops_free(h);
		free(queue);
		free(search);
		return false;
	}
	memset(search, !kept, live->switches);
	for (uint32_t s = 0; s < live->switches; s++)
		for (unsigned p = 1; p <= live->sw[s].ports; p++) {
			const uint32_t at = live->sw[s].first_port + p;

			if (kept && h->peer[at] == live->peer[at])
				continue;
			h->peer[at] = live->peer[at];
			for (uint32_t t = 0; kept && t < live->switches; t++)
				search[t] = search[t] || !holds_at(live, hops_of(h, t), s, live->peer[at]);
		}
	for (uint32_t t = 0; t < live->switches; t++)
		if (search[t])
			hops_to(live, t, h->count + (size_t)t * h->switches, queue);
	free(queue);
	free(search);
	return true;
}
