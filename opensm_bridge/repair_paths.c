/*
 * The paths of a column: which switches are concerned, whether entries lead to the end, and in which lanes numbers rise along
 * them. What is not concerned is looked at only where it is asked for, so the work grows with what is concerned.
 */
#include "repair_column.h"

void repair_begin(struct repair_state *x)
{
	for (uint32_t s = 0; s < x->switches; s++)
		x->reach[s] = x->reach_now[s] = x->up[s] ? LEADS : ENDLESS;
}

static void add_member(struct repair_state *x, uint32_t s)
{
	x->inside[s] = 1;
	x->member[x->members++] = s;
}

void repair_find_members(struct repair_state *x)
{
	x->members = 0;
	for (uint32_t i = 0; i < x->suspects; i++) {
		const uint32_t s = x->suspect[i];

		if (s != x->end && ((x->restores && x->now[s] != x->planned[s]) ||
				    repair_far(x, s, x->now[s]) == ROUTES_NO_SWITCH))
			add_member(x, s);
	}
	for (uint32_t i = 0; i < x->members; i++)
		for (unsigned port = 1; port < x->wide; port++) {
			const uint32_t far = x->far[(size_t)x->member[i] * x->wide + port], u = far >> 8;

			if (far != ROUTES_NO_SWITCH && u != x->end && !x->inside[u] &&
			    (x->now[u] == (far & 255) || (x->restores && x->planned[u] == (far & 255))))
				add_member(x, u);
		}
}

void repair_follow(struct repair_state *x, const uint8_t *entry, uint8_t *reach)
{
	for (uint32_t i = 0; i < x->members; i++)
		reach[x->member[i]] = UNKNOWN;
	for (uint32_t i = 0; i < x->members; i++) {
		uint32_t here = x->member[i], length = 0;
		uint8_t result = ENDLESS;

		while (reach[here] == UNKNOWN) {
			const uint32_t far = repair_far(x, here, entry[here]);

			reach[here] = FOLLOWED;
			x->chain[length++] = here;
			if (far == ROUTES_NO_SWITCH)
				break;
			here = far >> 8;
		}
		if (reach[here] == LEADS)
			result = LEADS;
		while (length)
			reach[x->chain[--length]] = result;
	}
}

unsigned repair_rising_by(const struct repair_state *x, uint32_t s, uint8_t port)
{
	const uint32_t far = repair_far(x, s, port), next = far >> 8;
	unsigned rising = 0;

	if (far == ROUTES_NO_SWITCH || !x->rank[(size_t)s * x->wide + port])
		return 0;
	for (unsigned lane = 0; lane < x->plan->lanes; lane++) {
		const uint32_t number = repair_number(x, lane, s, port);
		unsigned on;

		if (number && next != x->end && x->rising[next]) {
			on = certificate_lane(x->plan, next, far & 255, x->new[next], lane);
			if (x->rising[next] >> on & 1 && number < repair_number(x, on, next, x->new[next]))
				rising |= 1u << lane;
		} else if (number && next == x->end) {
			rising |= 1u << lane;
		}
	}
	return rising;
}

unsigned repair_rising(struct repair_state *x, uint32_t s)
{
	uint32_t here = s, length = 0;

	while (here != x->end && !x->known[here]) {
		x->known[here] = 1;
		x->chain[length++] = here;
		if (repair_far(x, here, x->new[here]) == ROUTES_NO_SWITCH)
			break;
		here = repair_far(x, here, x->new[here]) >> 8;
	}
	while (length) {
		here = x->chain[--length];
		x->rising[here] = (uint16_t)repair_rising_by(x, here, x->new[here]);
	}
	return s == x->end ? 0 : x->rising[s];
}
