/*
 * Finds the columns that a change of the fabric concerns, and has each of them repaired (repair_column.c). Routes that do not have
 * a live switch are not repaired: the agent is asked.
 *
 * A column is concerned if an entry of a live switch leads into a channel that is dead, or ends elsewhere than in the plan,
 * if it is not that of the plan, because it may return to it now, or if packets may meet other entries. So the work grows with
 * what changed, except for one look at each entry of the switches at dead channels, and one copy of the file.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "repair.h"
#include "repair_column.h"
#include "repair_paths.h"
#include "routes_image.h"

#define LIDS 0xc000

enum { NOW, PLANNED, NEW, AFTER, NONE, FIRST_OTHER, TABLES = FIRST_OTHER + OTHERS };
enum { CONCERNED = 1, MIXED = 2 }; /* a column; MIXED: packets may meet other entries than those of `now` */

struct job {
	struct routes *now, *next;
	const struct live *live;
	const struct known *known; /* NULL: packets meet no entries but those of `now` */
	uint32_t *row;		   /* of each live switch */
	uint32_t *column;	   /* [LIDS] of the LIDs of one offset that end where they ended when they were sent; else none */
	uint8_t *concerned;	   /* [columns] of one offset */
	uint8_t *hosts;		   /* [switches] live hosts are there */
	uint8_t *table[TABLES];	   /* [switches] one column */
	unsigned offset;
	uint32_t changed, later;
	bool moved;		 /* a live cable ends elsewhere than in the plan */
	bool dropping, hopeless; /* hosts' packets are dropped until the next repair; or even then */
	struct repair_state x;
};

#define ROOMS(ROOM) \
	ROOM(j->row, j->live->switches) ROOM(j->column, LIDS) ROOM(j->concerned, x->plan->columns) ROOM(j->hosts, x->switches) \
	ROOM(x->at, x->switches) ROOM(x->far, ports) ROOM(x->added, ports) ROOM(x->uses, ports) ROOM(x->sorted, ports) \
	ROOM(x->suspect, x->switches) ROOM(x->member, x->switches) ROOM(x->broken, x->switches) ROOM(x->order, x->switches) \
	ROOM(x->chain, x->switches)

static bool make_room(struct job *j)
{
	struct repair_state *x = &j->x;
	size_t ports;
	bool good = true;

	x->plan = j->now->amended ? j->now->amended->plan : j->now;
	x->switches = x->plan->switches;
	x->wide = x->plan->wide;
	ports = (size_t)x->switches * x->wide;
	for (int i = 0; i < TABLES; i++)
		good = (j->table[i] = calloc(x->switches, 1)) && good;
#define ROOM(array, count) good = (array = calloc((count) + 1, sizeof(*(array)))) && good;
	ROOMS(ROOM)
#undef ROOM
	return good;
}

static void drop_room(struct job *j)
{
	const struct repair_state *x = &j->x;

	for (int i = 0; i < TABLES; i++)
		free(j->table[i]);
#define ROOM(array, count) free(array);
	ROOMS(ROOM)
#undef ROOM
}

/* What this sweep has found: live cables that are where the plan has them, and where hosts are or may be. */
static void match_fabric(struct job *j)
{
	struct repair_state *x = &j->x;
	const struct live *live = j->live;

	routes_senders(x->plan, j->hosts);
	for (uint32_t s = 0; s < live->switches; s++) {
		j->row[s] = routes_switch(x->plan, live->sw[s].guid);
		x->at[j->row[s]].up = 1;
		x->at[j->row[s]].sends = j->hosts[j->row[s]];
		x->at[j->row[s]].lost = j->known && known_is_lost(j->known, live, s);
	}
	memset(j->hosts, 0, x->switches);
	for (uint32_t t = 0; t < live->terminals; t++)
		j->hosts[j->row[live->end[t].leaf]] = x->at[j->row[live->end[t].leaf]].sends = 1;
	memset(x->far, 0xff, (size_t)x->switches * x->wide * sizeof(*x->far));
	for (uint32_t s = 0; s < live->switches; s++)
		for (unsigned p = 1; p <= live->sw[s].ports && p < x->wide; p++) {
			const uint32_t at = live->sw[s].first_port + p, peer = live->peer[at];
			const size_t to = (size_t)j->row[s] * x->wide + p;

			if (peer == NO_PEER || x->plan->far_ends[to] == ROUTES_NO_SWITCH)
				continue;
			if (x->plan->far_ends[to] == (j->row[peer] << 8 | live->peer_port[at]))
				x->far[to] = x->plan->far_ends[to];
			else
				j->moved = true;
		}
}

/* Sets the column of each LID of one offset, but not where its last routes end at another switch: its entries are not those of
 * the column, then. */
static void find_lids(struct job *j)
{
	const struct live *live = j->live;
	const struct routes *now = j->now;

	memset(j->column, 0xff, LIDS * sizeof(*j->column));
	for (uint32_t d = 0; j->known && d < live_destinations(live); d++) {
		const struct live_destination to = live_destination(live, d);
		const uint32_t row = j->row[to.leaf];
		const uint32_t own = to.host ? guid_index(now->terminal_guid, now->terminals, to.guid) : now->terminals;

		for (unsigned lid = to.low; lid && lid <= to.high && lid < j->known->lids && lid < LIDS; lid++)
			if ((lid - to.low < now->offsets ? lid - to.low : 0) == j->offset &&
			    j->known->end[lid] == live->sw[to.leaf].guid)
				j->column[lid] = own < now->terminals && now->terminal_leaf[own] == row ? own : now->terminals + row;
	}
}

/* Adds an entry that packets may meet at a live switch besides that of `now`. */
static void add_other(const struct job *j, uint32_t s, uint8_t port)
{
	const struct live_switch *sw = &j->live->sw[s];
	const uint32_t row = j->row[s];
	const size_t to = (size_t)row * j->x.wide + port;

	if (port == j->table[NOW][row] || port == ENTRY_NO_ROUTE)
		return;
	if (port <= sw->ports && j->live->peer[sw->first_port + port] == NO_PEER)
		return; /* packets are dropped there */
	if (port <= sw->ports && (port >= j->x.wide || j->x.far[to] == ROUTES_NO_SWITCH)) {
		if (j->live->fresh && j->live->fresh[sw->first_port + port])
			return; /* the cable ends elsewhere now, and carries no packets yet */
		port = ENTRY_UNKNOWN;
	}
	for (int i = FIRST_OTHER; i < TABLES; i++) {
		if (j->table[i][row] == NO_ENTRY)
			j->table[i][row] = port;
		if (j->table[i][row] == port)
			return;
	}
	j->table[FIRST_OTHER][row] = ENTRY_UNKNOWN;
}

/* Sets `concerned`, and the suspects. */
static void find_concerned(struct job *j)
{
	const struct routes *now = j->now;
	struct repair_state *x = &j->x;

	memset(j->concerned, 0, now->columns);
	x->suspects = 0;
	for (uint32_t i = 0; i < j->live->switches; i++) {
		const uint32_t s = j->row[i];
		const uint8_t *row = routes_row(now, now->forwarding, j->offset, s);
		const uint8_t *planned = routes_row(x->plan, x->plan->forwarding, j->offset, s);
		const bool differs = now->amended && memcmp(row, planned, now->columns);
		const struct known_switch *k = j->known && !x->at[s].lost && !known_is_settled(j->known, i) ? &j->known->sw[i] : NULL;
		uint8_t dead[256] = {[ROUTES_NO_ROUTE] = CONCERNED}, most = memchr(row, ROUTES_NO_ROUTE, now->columns) != NULL;

		for (unsigned p = 1; p < x->wide; p++)
			if (x->plan->far_ends[(size_t)s * x->wide + p] != ROUTES_NO_SWITCH)
				most |= dead[p] = x->far[(size_t)s * x->wide + p] == ROUTES_NO_SWITCH;
		if (most || differs || k)
			x->suspect[x->suspects++] = s;
		for (uint32_t d = 0; most && d < now->columns; d++) {
			j->concerned[d] |= dead[row[d]];
			x->uses[(size_t)s * x->wide + (row[d] < x->wide ? row[d] : 0)]++;
		}
		for (uint32_t d = 0; differs && d < now->columns; d++)
			j->concerned[d] |= row[d] != planned[d];
		for (uint32_t lid = 1; k && lid < j->known->lids && lid < LIDS; lid++)
			if ((k->sent[lid] != k->had[lid] || k->older[(size_t)OLDERS * lid] != ENTRY_NO_ROUTE) && j->column[lid] < now->columns)
				j->concerned[j->column[lid]] = CONCERNED | MIXED;
	}
}

static struct routes *next_of(struct job *j)
{
	if (j->next)
		return j->next;
	j->next = routes_copy(j->now);
	if (j->next)
		j->next->amended = calloc(1, sizeof(*j->next->amended));
	if (j->next && j->next->amended)
		j->next->amended->plan = routes_hold((struct routes *)(uintptr_t)j->x.plan);
	return j->next;
}

/* Whether all live hosts reach the end by the new entries. */
static bool all_arrive(struct job *j)
{
	bool all = true;

	repair_follow(&j->x);
	for (uint32_t i = 0; i < j->x.members; i++)
		all = all && (!j->hosts[j->x.member[i]] || j->x.at[j->x.member[i]].reach == LEADS);
	return all;
}

/*
 * Repairs a column. If hosts have no path then, because the way leads over a switch that none of their packets passes now and that
 * is to be rewritten, too, it is tried again as if they passed every switch. If a switch in force does not allow yet what a host's path needs, because its entry leads elsewhere,
 * the host's packets are dropped until that switch is rewritten; the next repair gives them their path.
 */
static void repair_one(struct job *j)
{
	struct repair_state *x = &j->x;
	const struct repair_state first = *x;

	repair_column(x);
	if (x->covered && !all_arrive(j)) {
		repair_end_column(x);
		x->everywhere = true;
		repair_column(x);
		x->everywhere = false;
	}
	j->later += x->later;
	if (x->covered && !all_arrive(j)) {
		repair_end_column(x);
		x->now = first.new;
		x->new = j->table[AFTER];
		for (int k = 0; k < OTHERS; k++)
			x->other[k] = j->table[NONE];
		x->clean = true;
		repair_column(x);
		j->dropping = true;
		j->hopeless = j->hopeless || !all_arrive(j);
		j->later++;
		x->now = first.now;
		x->new = first.new;
	}
	repair_end_column(x);
}

/* Takes the entries of column `d` from all tables. */
static void fill_column(struct job *j, uint32_t d)
{
	const struct routes *now = j->now, *plan = j->x.plan;

	for (uint32_t s = 0; s < j->x.switches; s++) {
		j->table[NOW][s] = routes_row(now, now->forwarding, j->offset, s)[d];
		j->table[PLANNED][s] = routes_row(plan, plan->forwarding, j->offset, s)[d];
		for (int i = NONE; i < TABLES; i++)
			j->table[i][s] = NO_ENTRY;
	}
	for (uint32_t lid = 1; j->concerned[d] & MIXED && lid < j->known->lids && lid < LIDS; lid++)
		for (uint32_t s = 0; j->column[lid] == d && s < j->live->switches; s++) {
			const struct known_switch *k = &j->known->sw[s];
			if (j->x.at[j->row[s]].lost)
				continue;
			add_other(j, s, k->sent[lid]);
			add_other(j, s, k->had[lid]);
			for (int i = 0; i < OLDERS; i++)
				add_other(j, s, k->older[(size_t)OLDERS * lid + (size_t)i]);
		}
}

static bool repair_column_of(struct job *j, uint32_t d)
{
	struct repair_state *x = &j->x;

	fill_column(j, d);
	x->column = d;
	x->end = routes_end(x->plan, d);
	x->covered = routes_covers(x->plan, d);
	x->clean = !(j->concerned[d] & MIXED);
	x->now = j->table[NOW];
	x->planned = j->table[PLANNED];
	x->new = j->table[NEW];
	for (int k = 0; k < OTHERS; k++)
		x->other[k] = j->table[FIRST_OTHER + k];
	repair_one(j);
	for (uint32_t s = 0; s < x->switches; s++) {
		if (x->new[s] == x->now[s])
			continue;
		if (!next_of(j))
			return false;
		ROUTES_FILL(uint8_t, routes_row(j->next, j->next->forwarding, j->offset, s))[d] = x->new[s];
		j->changed++;
	}
	return true;
}

static bool repair_offset(struct job *j)
{
	find_lids(j);
	memset(j->x.uses, 0, (size_t)j->x.switches * j->x.wide * sizeof(*j->x.uses));
	find_concerned(j);
	repair_begin(&j->x);
	for (uint32_t d = 0; d < j->now->columns; d++)
		if (j->concerned[d] && j->x.at[routes_end(j->x.plan, d)].up && !repair_column_of(j, d))
			return false;
	return true;
}

struct routes *repair(struct routes *now, const struct live *live, const struct known *known, struct reason *why)
{
	struct job job = {.now = now, .live = live, .known = known}, *j = &job;
	const struct amendment *before = now->amended;
	const double begun = clock_seconds();
	bool good;

	for (uint32_t s = 0; s < live->switches; s++)
		if (routes_switch(now, live->sw[s].guid) == now->switches)
			return REASON_OF(why, "stale", "stale: switch 0x%016" PRIx64 " (%.60s) is not in the routes file",
					 live->sw[s].guid, live->sw[s].name), NULL;
	REASON(why, "no memory to repair the routes");
	good = make_room(j);
	if (good)
		match_fabric(j);
	for (; good && j->offset < now->offsets && j->offset < live->lids_per_port; j->offset++)
		good = repair_offset(j);
	if (good && ((j->moved && !before) || (j->later && !(before && before->later))))
		good = next_of(j);
	good = good && (!j->next || j->next->amended);
	drop_room(j);
	if (!good) {
		routes_drop(j->next);
		return NULL;
	}
	*why = (struct reason){.text = ""};
	if (!j->next)
		return routes_hold(now);
	*j->next->amended = (struct amendment){.plan = j->next->amended->plan, .repairs = (before ? before->repairs : 0) + 1,
					       .entries = j->changed, .later = j->later,
					       .dropping = j->dropping && !j->hopeless, .milliseconds = (clock_seconds() - begun) * 1e3};
	return j->next;
}
