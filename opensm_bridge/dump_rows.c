/* Fills the rows of a dump; see dump_rows.h. */
#include "dump_rows.h"

#include <stdlib.h>

#include "known.h"
#include "routes_write.h"

/* Port 0 in a column other than the switch's own means no route. */
static uint8_t port_of(uint8_t ports, uint8_t entry)
{
	return entry && entry < ports ? entry : ROUTES_NO_ROUTE;
}

static unsigned lid_of(uint16_t low, uint16_t high, unsigned offset)
{
	return low + offset <= high ? low + offset : low;
}

static uint8_t assumed_entry(const struct assumed *a, const struct live *live, uint32_t s, unsigned offset, uint32_t d)
{
	const uint32_t row = a->own ? routes_switch(a->own, live->sw[s].guid) : 0;

	if (d < live->terminals && live->end[d].leaf == s)
		return live->end[d].leaf_port;
	if (!a->own || row == a->own->switches || a->column[d] == a->own->columns || offset >= a->own->offsets)
		return ROUTES_NO_ROUTE;
	return routes_row(a->own, a->own->forwarding, offset, row)[a->column[d]];
}

uint32_t *dump_own_columns(const struct live *live, const struct routes *own)
{
	const uint32_t count = live->terminals + live->switches;
	uint32_t *column = malloc((count + 1) * sizeof(*column));

	for (uint32_t d = 0; column && d < count; d++) {
		const struct live_terminal *end = d < live->terminals ? &live->end[d] : NULL;
		const uint32_t at = end ? end->leaf : d - live->terminals;
		const uint32_t row = routes_switch(own, live->sw[at].guid);

		column[d] = end ? guid_index(own->terminal_guid, own->terminals, end->guid) : own->terminals;
		if (column[d] == own->terminals)
			column[d] = own->terminals + row; /* own->columns if the switch is not known either */
		else if (own->terminal_leaf[column[d]] != row)
			column[d] = own->terminals + row;
	}
	return column;
}

/* The LID of each column of the dump at an offset; returns the highest. */
static uint16_t fill_lids(uint16_t *lid, const struct live *live, unsigned offset)
{
	uint16_t highest = 0;

	for (uint32_t t = 0; t < live->terminals; t++)
		lid[t] = (uint16_t)lid_of(live->end[t].lid_low, live->end[t].lid_high, offset);
	for (uint32_t s = 0; s < live->switches; s++)
		lid[live->terminals + s] = (uint16_t)lid_of(live->sw[s].lid_low, live->sw[s].lid_high, offset);
	for (uint32_t d = 0; d < live->terminals + live->switches; d++)
		highest = lid[d] > highest ? lid[d] : highest;
	return highest;
}

/* The entries that were sent to a switch, where nothing else is asked for, as almost always. */
static void copy_row(struct routes *r, const struct known_row *known, const uint16_t *lid, unsigned offset, uint32_t s,
		     uint8_t ports)
{
	uint8_t *port = ROUTES_FILL(uint8_t, routes_row(r, r->forwarding, offset, s));

	for (uint32_t d = 0; d < r->columns; d++)
		port[d] = port_of(ports, known->sent[lid[d]]);
	port[r->terminals + s] = 0;
}

/* The row of a switch at an offset: the entries of the `lid` of each column. */
static void fill_row(struct bridge *b, struct routes *r, const struct live *live,
		     osm_switch_t **sw, const struct assumed *assumed, const uint16_t *lid, unsigned offset, uint32_t s)
{
	const ib_net16_t from = cl_hton16(live->sw[s].lid_low);
	const struct known_row known = tables_row(b, sw[s]);
	const uint8_t ports = sw[s]->num_ports;
	uint8_t *port = ROUTES_FILL(uint8_t, routes_row(r, r->forwarding, offset, s));
	uint8_t *had = r->had ? ROUTES_FILL(uint8_t, routes_row(r, r->had, offset, s)) : NULL;
	uint8_t *level = r->service_levels ?
		ROUTES_FILL(uint8_t, routes_row(r, r->service_levels, offset, s)) : NULL;

	for (uint32_t d = 0; d < r->columns; d++) {
		const bool known_lid = lid[d] < known.lids;
		const uint8_t instead = known_lid ? known.had[lid[d]] : ENTRY_UNKNOWN;

		port[d] = port_of(ports, known_lid ? known.sent[lid[d]] : ENTRY_NO_ROUTE);
		if (assumed->used && instead == ENTRY_UNKNOWN)
			port[d] = assumed_entry(assumed, live, s, offset, d);
		if (had)
			had[d] = instead == ENTRY_UNKNOWN ? ROUTES_UNKNOWN : port_of(ports, instead);
		if (level)
			level[d] = lanes_path_sl(b, 0, from, cl_hton16(lid[d]));
	}
	port[live->terminals + s] = 0;
	if (had)
		had[live->terminals + s] = 0;
}

bool dump_fill_tables(struct bridge *b, struct routes *r, const struct live *live, osm_switch_t **sw,
			const struct assumed *assumed)
{
	uint16_t *lid = malloc((r->columns + 1) * sizeof(*lid));

	for (unsigned o = 0; lid && o < r->offsets; o++) {
		const uint16_t highest = fill_lids(lid, live, o);

		for (uint32_t s = 0; s < live->switches; s++) {
			const struct known_row known = tables_row(b, sw[s]);

			if (highest < known.lids && !assumed->used && !r->had && !r->service_levels)
				copy_row(r, &known, lid, o, s, sw[s]->num_ports);
			else
				fill_row(b, r, live, sw, assumed, lid, o, s);
		}
	}
	free(lid);
	return lid;
}
