/* The live fabric: functions of its arrays alone. */
#include "live.h"

#include <stdlib.h>
#include <string.h>

#include "guid.h"

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
