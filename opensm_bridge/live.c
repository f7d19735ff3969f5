/* The live fabric: functions of its arrays alone. */
#include "live.h"

#include <stdlib.h>
#include <string.h>

#include "hash.h"

uint64_t live_fingerprint(const struct live *live)
{
	uint64_t hash = hash_mix(live->switches, live->terminals), ends = 0;

	for (uint32_t s = 0; s < live->switches; s++) {
		const struct live_switch *sw = &live->sw[s];

		hash = hash_mix(hash, sw->guid);
		for (unsigned port = 1; port <= sw->ports; port++)
			hash = hash_mix(hash, live->peer[sw->first_port + port]);
	}
	/* A sum, because the order of terminals must not matter. */
	for (uint32_t t = 0; t < live->terminals; t++)
		ends += hash_mix(hash_mix(live->end[t].guid, live->end[t].leaf), live->end[t].leaf_port);
	return hash_mix(hash, ends);
}

void live_free(struct live *live)
{
	free(live->sw);
	free(live->end);
	free(live->peer);
	free(live->peer_port);
	free(live->fresh);
	memset(live, 0, sizeof(*live));
}

void hops_to(const struct live *live, uint32_t target, uint8_t *hops, uint32_t *queue)
{
	uint32_t head = 0, tail = 0;

	memset(hops, HOPS_UNREACHABLE, live->switches);
	hops[target] = 0;
	queue[tail++] = target;
	while (head < tail) {
		const uint32_t here = queue[head++];
		const struct live_switch *sw = &live->sw[here];

		for (unsigned port = 1; port <= sw->ports; port++) {
			const uint32_t neighbour = live->peer[sw->first_port + port];

			if (neighbour == NO_PEER || hops[neighbour] != HOPS_UNREACHABLE)
				continue;
			hops[neighbour] = hops[here] < HOPS_MOST ? (uint8_t)(hops[here] + 1) : HOPS_MOST;
			queue[tail++] = neighbour;
		}
	}
}
