/*
 * Examines a mixture of two columns of entries: those in force, and the new ones. While OpenSM rewrites the switches, a
 * packet may meet an old entry at one switch and a new one at the next, in any combination. All combinations that a packet
 * of a host can meet are followed, by lane; each channel must have a larger number than the one before it.
 */
#include "repair_column.h"

static size_t place(const struct repair_state *x, struct step at)
{
	return ((size_t)at.entry * x->switches + at.s) * x->plan->lanes + at.lane;
}

static uint8_t port_of(const struct repair_state *x, uint32_t s, unsigned entry)
{
	return entry ? x->new[s] : x->now[s];
}

/* Whether packets can leave switch `s` by this entry; the new one does not count if it is the one in force. */
static bool leads_on(const struct repair_state *x, uint32_t s, unsigned entry)
{
	if (entry && x->new[s] == x->now[s])
		return false;
	return repair_far(x, s, port_of(x, s, entry)) != ROUTES_NO_SWITCH;
}

void mixture_in_force(struct repair_state *x)
{
	const struct routes *r = x->plan;

	for (uint32_t i = 0; i < x->members; i++)
		x->held[0][x->member[i]] = 0;
	for (uint32_t i = 0; x->covered && i < x->members; i++) {
		const uint32_t from = x->member[i];
		const unsigned begin = leads_on(x, from, 0) ?
			certificate_begin(&x->who, x->offset, from, x->column, x->now[from]) : 0;

		for (unsigned first = 0; begin >> first; first++) {
			unsigned lane = first;
			uint32_t s = from;

			if (!(begin >> first & 1))
				continue;
			while (x->inside[s] && leads_on(x, s, 0) && !(x->held[0][s] >> lane & 1)) {
				const uint32_t far = repair_far(x, s, x->now[s]);

				x->held[0][s] |= (uint16_t)(1u << lane);
				s = far >> 8;
				if (s != x->end && leads_on(x, s, 0))
					lane = certificate_lane(r, s, far & 255, x->now[s], lane);
			}
		}
	}
}

/* The switch whose new entry led a packet to this step; NO_SWITCH if none did. */
static uint32_t cause(const struct repair_state *x, struct step at)
{
	for (size_t hops = 0; hops <= (size_t)2 * x->switches * x->plan->lanes; hops++) {
		if (at.entry)
			return at.s;
		if (x->came_from[place(x, at)].s == ROUTES_NO_SWITCH)
			break;
		at = x->came_from[place(x, at)];
	}
	return ROUTES_NO_SWITCH;
}

/* Sets `culprit`; false if the entries in force alone are the cause, so that no new entry can help. */
static bool blame(const struct repair_state *x, struct step at, uint32_t *culprit)
{
	*culprit = at.entry ? at.s : cause(x, at);
	return *culprit != ROUTES_NO_SWITCH;
}

static void push(struct repair_state *x, struct step at, struct step from, size_t *depth)
{
	if (x->held[at.entry][at.s] >> at.lane & 1)
		return;
	x->held[at.entry][at.s] |= (uint16_t)(1u << at.lane);
	x->came_from[place(x, at)] = from;
	x->stack[(*depth)++] = at;
}

static void begin(struct repair_state *x, uint32_t s, size_t *depth)
{
	const struct step nobody = {.s = ROUTES_NO_SWITCH};

	for (uint8_t entry = 0; entry < 2; entry++) {
		const unsigned lanes = leads_on(x, s, entry) ?
			certificate_begin(&x->who, x->offset, s, x->column, port_of(x, s, entry)) : 0;

		for (uint8_t lane = 0; lanes >> lane; lane++)
			if (lanes >> lane & 1)
				push(x, (struct step){s, entry, lane}, nobody, depth);
	}
}

static bool step_rises(struct repair_state *x, struct step at, size_t *depth, uint32_t *culprit)
{
	const uint8_t port = port_of(x, at.s, at.entry);
	const uint32_t far = repair_far(x, at.s, port), next = far >> 8;
	const uint32_t number = repair_number(x, at.lane, at.s, port);

	if (!number)
		return !blame(x, at, culprit);
	if (next != x->end && !x->inside[next]) {
		const unsigned on = certificate_lane(x->plan, next, far & 255, x->now[next], at.lane);

		if (repair_rising(x, next) >> on & 1 && repair_number(x, on, next, x->now[next]) > number)
			return true;
		return !blame(x, at, culprit);
	}
	for (uint8_t entry = 0; next != x->end && entry < 2; entry++) {
		struct step on = {next, entry, 0};

		if (!leads_on(x, next, entry))
			continue;
		on.lane = (uint8_t)certificate_lane(x->plan, next, far & 255, port_of(x, next, entry), at.lane);
		if (repair_number(x, on.lane, next, port_of(x, next, entry)) <= number &&
		    blame(x, entry ? on : at, culprit))
			return false;
		push(x, on, at, depth);
	}
	return true;
}

bool mixture_rises(struct repair_state *x, uint32_t *culprit)
{
	size_t depth = 0;

	if (!x->covered)
		return true;
	for (uint32_t i = 0; i < x->members; i++)
		x->held[0][x->member[i]] = x->held[1][x->member[i]] = 0;
	for (uint32_t i = 0; i < x->members; i++)
		begin(x, x->member[i], &depth);
	while (depth)
		if (!step_rises(x, x->stack[--depth], &depth, culprit))
			return false;
	return true;
}
