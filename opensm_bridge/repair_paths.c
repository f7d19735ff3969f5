/*
 * The paths of a column: which switches are concerned, whether entries lead to the end, and whether numbers rise along them.
 * What is not concerned is looked at only where it is asked for, so the work grows with what is concerned.
 */
#include "repair_paths.h"

void repair_begin(struct repair_state *x)
{
	for (uint32_t s = 0; s < x->switches; s++)
		x->at[s].reach = x->at[s].up ? LEADS : ENDLESS;
}

/* An entry by which packets may leave `s` now: that of `now` (0) or another one; NO_ENTRY if they are dropped. */
static uint8_t in_force(const struct repair_state *x, uint32_t s, unsigned which)
{
	const uint8_t port = which ? x->other[which - 1][s] : x->now[s];

	return port != ENTRY_UNKNOWN && (x->at[s].lost || repair_far(x, s, port) == ROUTES_NO_SWITCH) ? NO_ENTRY : port;
}

static void add_member(struct repair_state *x, uint32_t s)
{
	x->at[s].inside = 1;
	x->at[s].passed = 0;
	x->at[s].arrive = 0;
	x->at[s].low = UINT32_MAX;
	x->member[x->members++] = s;
}

static bool is_concerned(const struct repair_state *x, uint32_t s)
{
	return x->now[s] != x->planned[s] || repair_far(x, s, x->now[s]) == ROUTES_NO_SWITCH || x->other[0][s] != NO_ENTRY;
}

static bool leads_by(const struct repair_state *x, uint32_t s, uint8_t port)
{
	bool found = x->now[s] == port || x->planned[s] == port;

	for (unsigned i = 0; i < OTHERS && !found; i++)
		found = x->other[i][s] == port;
	return found;
}

/* Marks the members that packets of hosts pass by entries in force, from those where they begin. */
static void find_passed(struct repair_state *x)
{
	uint32_t *stack = x->chain, depth = 0;

	for (uint32_t i = 0; i < x->members; i++)
		if (x->at[x->member[i]].sends || x->everywhere) {
			x->at[x->member[i]].passed = 1;
			stack[depth++] = x->member[i];
		}
	while (depth) {
		const uint32_t s = stack[--depth];

		for (unsigned which = 0; which <= OTHERS; which++) {
			const uint8_t port = in_force(x, s, which);
			const uint32_t far = repair_far(x, s, port), next = far >> 8;
			uint32_t number;

			if (far == ROUTES_NO_SWITCH || next == x->end || !x->at[next].inside)
				continue;
			number = x->plan->numbers[(size_t)s * x->wide + port];
			x->at[next].arrive = number > x->at[next].arrive ? number : x->at[next].arrive;
			if (!x->at[next].passed)
				stack[depth++] = next;
			x->at[next].passed = 1;
		}
	}
}

void repair_find_members(struct repair_state *x)
{
	x->members = 0;
	for (uint32_t i = 0; i < x->suspects; i++)
		if (x->suspect[i] != x->end && is_concerned(x, x->suspect[i]))
			add_member(x, x->suspect[i]);
	for (uint32_t i = 0; i < x->members; i++)
		for (unsigned port = 1; port < x->wide; port++) {
			const uint32_t far = x->far[(size_t)x->member[i] * x->wide + port], u = far >> 8;

			if (far != ROUTES_NO_SWITCH && u != x->end && !x->at[u].inside && leads_by(x, u, far & 255))
				add_member(x, u);
		}
	for (uint32_t i = 0; i < x->members; i++)
		for (unsigned which = 0; which <= OTHERS; which++) {
			const uint32_t s = x->member[i];
			const uint8_t port = in_force(x, s, which);
			const uint32_t number = port == ENTRY_UNKNOWN ? 0 : port == NO_ENTRY ? UINT32_MAX :
						x->plan->numbers[(size_t)s * x->wide + port];

			x->at[s].low = number < x->at[s].low ? number : x->at[s].low;
		}
	if (x->covered)
		find_passed(x);
}

void repair_follow(struct repair_state *x)
{
	for (uint32_t i = 0; i < x->members; i++)
		x->at[x->member[i]].reach = UNKNOWN;
	for (uint32_t i = 0; i < x->members; i++) {
		uint32_t here = x->member[i], length = 0;
		uint8_t result = ENDLESS;

		while (x->at[here].reach == UNKNOWN) {
			const uint32_t far = repair_far(x, here, x->new[here]);

			x->at[here].reach = FOLLOWED;
			x->chain[length++] = here;
			if (far == ROUTES_NO_SWITCH)
				break;
			here = far >> 8;
		}
		if (x->at[here].reach == LEADS)
			result = LEADS;
		while (length)
			x->at[x->chain[--length]].reach = result;
	}
}

/* Whether packets that come only by new entries may meet an entry in force that is not the new one. */
static bool exposes(const struct repair_state *x, uint32_t s)
{
	bool found = false;

	for (unsigned which = 0; x->at[s].inside && !x->at[s].passed && which <= OTHERS; which++) {
		const uint8_t port = in_force(x, s, which);

		found = found || (port != NO_ENTRY && port != x->new[s]);
	}
	return found;
}

/* The number of the channel from `s` by `port` to a switch from which numbers rise above `after`; else 0. */
static uint32_t before(const struct repair_state *x, uint32_t s, uint8_t port, uint32_t after)
{
	const uint32_t next = repair_far(x, s, port) >> 8, number = x->plan->numbers[(size_t)s * x->wide + port];

	if (next == x->end)
		return number;
	return number < after && (!x->at[next].inside || number < x->at[next].low) && !exposes(x, next) ? number : 0;
}

uint32_t repair_rising_by(struct repair_state *x, uint32_t s, uint8_t port)
{
	const uint32_t far = repair_far(x, s, port);

	if (far == ROUTES_NO_SWITCH)
		return 0;
	return before(x, s, port, far >> 8 == x->end ? 0 : repair_rising(x, far >> 8));
}

uint32_t repair_rising(struct repair_state *x, uint32_t s)
{
	uint32_t here = s, length = 0, after = 0;

	while (here != x->end && x->at[here].stamped != x->stamp && repair_far(x, here, x->new[here]) != ROUTES_NO_SWITCH &&
	       length < x->switches) {
		x->at[here].stamped = x->stamp;
		x->at[here].number = 0; /* if the path comes back here */
		x->chain[length++] = here;
		here = repair_far(x, here, x->new[here]) >> 8;
	}
	if (here != x->end)
		after = x->at[here].stamped == x->stamp ? x->at[here].number : 0;
	while (length) {
		here = x->chain[--length];
		after = x->at[here].number = before(x, here, x->new[here], after);
	}
	return s == x->end ? 0 : after;
}
