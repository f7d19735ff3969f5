/*
 * Finds the row of each live switch: by its GUID, or by its place. A live switch that the file does not have stands for a
 * switch of the file if that one is not live, and if each of its cables to switches ends where those of that switch end.
 */
#include "repair_match.h"

#include <stdlib.h>

/* The row of the dead switch that live switch `s` may replace, by the cables to its known neighbours; or ROUTES_NO_SWITCH. */
static uint32_t place_of(const struct matched *m, const struct routes *routes, const struct live *live, uint32_t s)
{
	const struct live_switch *sw = &live->sw[s];
	uint32_t place = ROUTES_NO_SWITCH;

	for (unsigned p = 1; p <= sw->ports; p++) {
		const uint32_t peer = live->peer[sw->first_port + p];
		const uint32_t row = peer == NO_PEER ? ROUTES_NO_SWITCH : m->row[peer];
		const unsigned port = live->peer_port[sw->first_port + p];
		uint32_t far;

		if (row == ROUTES_NO_SWITCH)
			continue;
		far = port < routes->wide ? routes->far_ends[(size_t)row * routes->wide + port] : ROUTES_NO_SWITCH;
		if (far == ROUTES_NO_SWITCH || (far & 255) != p || (place != ROUTES_NO_SWITCH && place != far >> 8))
			return ROUTES_NO_SWITCH;
		place = far >> 8;
	}
	return place != ROUTES_NO_SWITCH && !m->up[place] && routes->switch_ports[place] <= sw->ports ?
		       place : ROUTES_NO_SWITCH;
}

static void match_places(struct matched *m, const struct routes *routes, const struct live *live)
{
	for (uint32_t s = 0; s < live->switches; s++) {
		if (m->row[s] != ROUTES_NO_SWITCH)
			continue;
		m->row[s] = place_of(m, routes, live, s);
		if (m->row[s] == ROUTES_NO_SWITCH) {
			m->first = m->unknown ? m->first : s;
			m->unknown++;
			continue;
		}
		m->up[m->row[s]] = 1;
		m->replaced_row[m->replaced] = m->row[s];
		m->replaced_by[m->replaced++] = live->sw[s].guid;
	}
}

bool matched_make(struct matched *m, const struct routes *routes, const struct live *live)
{
	*m = (struct matched){.row = calloc(live->switches + 1, sizeof(*m->row)),
			      .up = calloc(routes->switches + 1, sizeof(*m->up)),
			      .replaced_row = calloc(live->switches + 1, sizeof(*m->replaced_row)),
			      .replaced_by = calloc(live->switches + 1, sizeof(*m->replaced_by))};
	if (!m->row || !m->up || !m->replaced_row || !m->replaced_by)
		return false;
	for (uint32_t s = 0; s < live->switches; s++) {
		m->row[s] = guid_index(routes->switch_guid, routes->switches, live->sw[s].guid);
		if (m->row[s] == routes->switches)
			m->row[s] = ROUTES_NO_SWITCH;
		else
			m->up[m->row[s]] = 1;
	}
	match_places(m, routes, live);
	return true;
}

void matched_free(struct matched *m)
{
	free(m->row);
	free(m->up);
	free(m->replaced_row);
	free(m->replaced_by);
}
