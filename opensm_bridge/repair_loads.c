/* Which of the ports that a repair may choose is taken: the predicted loads of the file, and what the repair has added. */
#include "repair_column.h"

#include <string.h>

/* Predicted load of one entry of switch `s` that leads out by `port`, in the unit of `loads`. */
static uint64_t load_of(struct repair_state *x, uint32_t s, uint8_t port)
{
	const struct routes *r = x->plan;
	uint32_t *uses = x->uses + (size_t)s * x->wide;

	if (!x->counted[s]) {
		const uint8_t *row = routes_row(r, r->forwarding, x->offset, s);

		memset(uses, 0, x->wide * sizeof(*uses));
		for (uint32_t d = 0; d < r->columns; d++)
			if (row[d] < x->wide)
				uses[row[d]]++;
		x->counted[s] = 1;
	}
	return port < x->wide && uses[port] ? r->loads[(size_t)s * x->wide + port] / uses[port] + 1 : 1;
}

uint64_t repair_cost(const struct repair_state *x, uint32_t s, uint8_t port)
{
	const size_t at = (size_t)s * x->wide + port;

	if (port == x->now[s] || port == x->planned[s])
		return port != x->now[s];
	return 2 + ((x->plan->loads[at] + x->added[at]) << 8 | (port + x->column) % x->wide);
}

void repair_add_loads(struct repair_state *x)
{
	for (uint32_t i = 0; i < x->broken_count; i++) {
		const uint32_t s = x->broken[i];

		if (x->new[s] != NO_ENTRY && x->new[s] != x->now[s])
			x->added[(size_t)s * x->wide + x->new[s]] += load_of(x, s, x->planned[s]);
	}
}
