/*
 * Finds the columns that a change of the fabric concerns, and has each of them repaired (repair_column.c).
 *
 * A column is concerned if an entry of a live switch leads into a channel that is dead, or ends elsewhere than in the plan,
 * if it is not that of the plan, because it may return to it now, or if packets may meet other entries. So the work grows with
 * what changed, except for one look at each entry of the switches at dead channels, and one copy of the file.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "certificate.h"
#include "repair.h"
#include "repair_column.h"
#include "repair_match.h"
#include "routes_write.h"

#define AT_ONCE 64 /* columns: one cache line of a row */

enum table { NOW, PLANNED, NEW, FIRST_OTHER, AFTER = FIRST_OTHER + OTHERS, TABLES };

struct job {
	struct routes *now, *next;
	const struct live *live;
	const struct known *known; /* NULL: packets meet no entries but those of `now` */
	const struct matched *matched;
	uint32_t *lid, *next_lid;  /* [columns] the first LID of a column, and lists by LID; 0: no more */
	uint8_t *concerned;	   /* [columns] of one offset; MIXED: packets may meet other entries */
	uint8_t *hosts;		   /* [switches] live hosts are there */
	uint8_t *block[TABLES];	   /* [AT_ONCE][switches] columns */
	unsigned offset;
	uint32_t changed, later;
	bool dropping, hopeless; /* hosts' packets are dropped until the next repair; or even then */
	struct repair_state x;
};

enum { CONCERNED = 1, MIXED = 2 };

/* Room for one repair. */
static bool make_room(struct job *j)
{
	struct repair_state *x = &j->x;
	const struct routes *plan = j->now->amended ? j->now->amended->plan : j->now;
	const size_t s = plan->switches, ports = s * plan->wide;
	bool good = true;

	x->up = j->matched->up;
	x->plan = plan;
	x->switches = plan->switches;
	x->wide = plan->wide;
#define ROOM(array, count) good = (array = calloc((count) + 1, sizeof(*(array)))) && good
	ROOM(j->lid, plan->columns), ROOM(j->next_lid, UINT16_MAX);
	ROOM(j->concerned, plan->columns), ROOM(j->hosts, s);
	for (int i = 0; i < TABLES; i++)
		ROOM(j->block[i], s * AT_ONCE);
	ROOM(x->lost, s), ROOM(x->sends, s);
	ROOM(x->far, ports), ROOM(x->added, ports), ROOM(x->uses, ports), ROOM(x->sorted, ports);
	ROOM(x->suspect, s), ROOM(x->member, s), ROOM(x->inside, s), ROOM(x->reach, s), ROOM(x->passed, s);
	ROOM(x->arrive, s), ROOM(x->low, s), ROOM(x->number, s), ROOM(x->stamped, s), ROOM(x->broken, s);
	ROOM(x->order, s), ROOM(x->need, s), ROOM(x->needed, s), ROOM(x->chain, s);
#undef ROOM
	return good;
}

static void drop_room(struct job *j)
{
	const struct repair_state *x = &j->x;
	void *const rooms[] = {j->lid, j->next_lid, j->concerned, j->hosts, x->lost, x->sends, x->far, x->added, x->uses,
			       x->sorted, x->suspect, x->member, x->inside, x->reach, x->passed, x->arrive, x->low, x->number,
			       x->stamped, x->broken, x->order, x->need, x->needed, x->chain};

	for (int i = 0; i < TABLES; i++)
		free(j->block[i]);
	for (size_t i = 0; i < sizeof(rooms) / sizeof(*rooms); i++)
		free(rooms[i]);
}

/* What this sweep has found: live cables that are where the plan has them, and where hosts are or may be. */
static bool match_fabric(struct job *j)
{
	struct repair_state *x = &j->x;
	const struct routes *plan = x->plan;
	const uint32_t *row = j->matched->row;
	struct certificate who;

	if (!certificate_make(&who, plan))
		return false;
	for (uint32_t s = 0; s < x->switches; s++)
		x->sends[s] = who.sends[s] && x->up[s];
	certificate_free(&who);
	for (uint32_t t = 0; t < j->live->terminals; t++)
		j->hosts[row[j->live->end[t].leaf]] = 1;
	memset(x->far, 0xff, (size_t)x->switches * x->wide * sizeof(*x->far));
	for (uint32_t s = 0; s < j->live->switches; s++) {
		x->lost[row[s]] = j->known && known_is_lost(j->known, j->live, s);
		for (unsigned p = 1; p <= j->live->sw[s].ports && p < x->wide; p++) {
			const uint32_t at = j->live->sw[s].first_port + p, peer = j->live->peer[at];
			const size_t to = (size_t)row[s] * x->wide + p;

			if (peer != NO_PEER && plan->far_ends[to] == (row[peer] << 8 | j->live->peer_port[at]))
				x->far[to] = plan->far_ends[to];
		}
	}
	return true;
}

/* Lists the LIDs of each column, by one offset: those that end at the switch where they ended when they were sent. */
static void list_lids(struct job *j)
{
	const struct live *live = j->live;
	const uint32_t *row = j->matched->row;

	memset(j->lid, 0, j->now->columns * sizeof(*j->lid));
	for (uint32_t d = 0; j->known && d < live->switches + live->terminals; d++) {
		const struct live_terminal *t = d < live->switches ? NULL : &live->end[d - live->switches];
		const struct live_switch *leaf = &live->sw[t ? t->leaf : d];
		const uint32_t known = t ? guid_index(j->now->terminal_guid, j->now->terminals, t->guid) : j->now->terminals;
		const bool at_home = known < j->now->terminals && j->now->terminal_leaf[known] == row[t->leaf];
		const uint32_t column = at_home ? known : j->now->terminals + row[t ? t->leaf : d];
		const unsigned low = t ? t->lid_low : leaf->lid_low, high = t ? t->lid_high : leaf->lid_high;

		for (unsigned lid = low; lid && lid <= high && lid < j->known->lids; lid++) {
			if ((lid - low < j->now->offsets ? lid - low : 0) != j->offset || j->known->end[lid] != leaf->guid)
				continue;
			j->next_lid[lid] = j->lid[column];
			j->lid[column] = lid;
		}
	}
}

/* The far end of a port in the amended file: none if the live cable of either end ends elsewhere than planned. */
static bool is_moved(const struct job *j, uint32_t s, unsigned port)
{
	const size_t to = (size_t)j->matched->row[s] * j->x.wide + port;

	return j->live->peer[j->live->sw[s].first_port + port] != NO_PEER && j->x.far[to] == ROUTES_NO_SWITCH &&
	       j->x.plan->far_ends[to] != ROUTES_NO_SWITCH;
}

/* Sets the far ends of `to` to those of the plan, without the cables that end elsewhere. */
static void set_far_ends(const struct job *j, uint32_t *to)
{
	const struct routes *plan = j->x.plan;

	memcpy(to, plan->far_ends, (size_t)plan->switches * plan->wide * sizeof(*to));
	for (uint32_t s = 0; s < j->live->switches; s++)
		for (unsigned p = 1; p <= j->live->sw[s].ports && p < plan->wide; p++) {
			const size_t at = (size_t)j->matched->row[s] * plan->wide + p;

			if (!is_moved(j, s, p))
				continue;
			to[at] = ROUTES_NO_SWITCH;
			to[(plan->far_ends[at] >> 8) * plan->wide + (plan->far_ends[at] & 255)] = ROUTES_NO_SWITCH;
		}
}

/* Whether the amended routes must say something else of the fabric than those in force. */
static bool fabric_differs(const struct job *j)
{
	const struct amendment *a = j->now->amended;
	const struct matched *m = j->matched;
	const size_t ports = (size_t)j->x.switches * j->x.wide;
	uint32_t *ends = calloc(ports, sizeof(*ends));
	bool differs = !ends;

	if (ends)
		set_far_ends(j, ends);
	differs = differs || memcmp(ends, j->now->far_ends, ports * sizeof(*ends));
	free(ends);
	return differs || (a ? a->replaced : 0) != m->replaced ||
	       (m->replaced && (memcmp(a->replaced_row, m->replaced_row, m->replaced * sizeof(uint32_t)) ||
				memcmp(a->replaced_by, m->replaced_by, m->replaced * sizeof(uint64_t))));
}

/* Of an entry that packets may meet at a live switch besides that of `now`: NO_ENTRY if it leads nowhere. */
static uint8_t as_other(const struct job *j, uint32_t s, uint8_t now, uint8_t port)
{
	const struct live_switch *sw = &j->live->sw[s];

	if (port == now || port == ENTRY_NO_ROUTE)
		return NO_ENTRY;
	if (port > sw->ports)
		return ENTRY_UNKNOWN;
	if (j->live->peer[sw->first_port + port] == NO_PEER)
		return NO_ENTRY;
	if (port < j->x.wide && j->x.far[(size_t)j->matched->row[s] * j->x.wide + port] != ROUTES_NO_SWITCH)
		return port;
	/* The cable ends elsewhere than planned: nothing is known of packets that it carries, if it does. */
	return j->live->fresh && j->live->fresh[sw->first_port + port] ? NO_ENTRY : ENTRY_UNKNOWN;
}

/* The two entries that packets may meet at a live switch on the way to a column, besides that of `now`. */
static void find_others(const struct job *j, uint32_t s, uint32_t column, uint8_t now, uint8_t other[OTHERS])
{
	const struct known_switch *k = j->known && !j->x.lost[j->matched->row[s]] ? &j->known->sw[s] : NULL;

	other[0] = other[1] = NO_ENTRY;
	for (uint32_t lid = k ? j->lid[column] : 0; lid; lid = j->next_lid[lid]) {
		const uint8_t found[] = {as_other(j, s, now, k->sent[lid]), as_other(j, s, now, k->had[lid]),
					 as_other(j, s, now, k->older[lid])};

		for (int i = 0; i < 3; i++) {
			if (found[i] == NO_ENTRY || found[i] == other[0] || found[i] == other[1])
				continue;
			if (other[0] == NO_ENTRY || other[1] == NO_ENTRY)
				other[other[0] != NO_ENTRY] = found[i];
			else
				other[0] = ENTRY_UNKNOWN;
		}
	}
}

/* Sets `concerned`, and the suspects; returns whether any column is. */
static bool find_concerned(struct job *j)
{
	const struct routes *now = j->now;
	struct repair_state *x = &j->x;
	uint8_t dead[256], any = 0, most, other[OTHERS];

	memset(j->concerned, 0, now->columns);
	x->suspects = 0;
	for (uint32_t i = 0; i < j->live->switches; i++) {
		const uint32_t s = j->matched->row[i];
		const uint8_t *row = routes_row(now, now->forwarding, j->offset, s);
		const uint8_t *planned = routes_row(x->plan, x->plan->forwarding, j->offset, s);
		const bool differs = now->amended && memcmp(row, planned, now->columns);
		const bool mixed = j->known && !x->lost[s] && !known_is_settled(j->known, i);

		memset(dead, 0, sizeof(dead));
		dead[ROUTES_NO_ROUTE] = CONCERNED;
		most = memchr(row, ROUTES_NO_ROUTE, now->columns) != NULL;
		for (unsigned p = 1; p < x->wide; p++)
			if (x->plan->far_ends[(size_t)s * x->wide + p] != ROUTES_NO_SWITCH)
				most |= dead[p] = x->far[(size_t)s * x->wide + p] == ROUTES_NO_SWITCH;
		if (most || differs || mixed)
			x->suspect[x->suspects++] = s;
		for (uint32_t d = 0; most && d < now->columns; d++) {
			j->concerned[d] |= dead[row[d]];
			x->uses[(size_t)s * x->wide + (row[d] < x->wide ? row[d] : 0)]++;
		}
		for (uint32_t d = 0; differs && d < now->columns; d++)
			j->concerned[d] |= row[d] != planned[d];
		for (uint32_t d = 0; mixed && d < now->columns; d++) {
			find_others(j, i, d, row[d], other);
			if (other[0] != NO_ENTRY)
				j->concerned[d] |= CONCERNED | MIXED;
		}
	}
	for (uint32_t d = 0; d < now->columns; d++)
		any |= j->concerned[d];
	return any;
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
		all = all && (!j->hosts[j->x.member[i]] || j->x.reach[j->x.member[i]] == LEADS);
	return all;
}

/*
 * Repairs a column. If a switch in force does not allow yet what a host's path needs, because its entry leads elsewhere,
 * the host's packets are dropped until that switch is rewritten; the next repair gives them their path.
 */
static void repair_one(struct job *j)
{
	struct repair_state *x = &j->x, first;

	repair_column(x);
	j->later += x->later;
	first = *x;
	if (x->covered && !all_arrive(j)) {
		repair_end_column(x);
		x->now = first.new;
		x->new = j->block[AFTER];
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

/* Fills in the tables of some columns. */
static void fill_block(struct job *j, const uint32_t *which, uint32_t count)
{
	const struct routes *now = j->now, *plan = j->x.plan;
	uint8_t other[OTHERS];

	memset(j->block[FIRST_OTHER], NO_ENTRY, (size_t)AT_ONCE * j->x.switches);
	memset(j->block[FIRST_OTHER + 1], NO_ENTRY, (size_t)AT_ONCE * j->x.switches);
	for (uint32_t s = 0; s < j->x.switches; s++) {
		const uint8_t *row = routes_row(now, now->forwarding, j->offset, s);
		const uint8_t *planned = routes_row(plan, plan->forwarding, j->offset, s);

		for (uint32_t i = 0; i < count; i++) {
			j->block[NOW][(size_t)i * j->x.switches + s] = row[which[i]];
			j->block[PLANNED][(size_t)i * j->x.switches + s] = planned[which[i]];
		}
	}
	for (uint32_t l = 0; j->known && l < j->live->switches; l++)
		for (uint32_t i = 0; i < count; i++) {
			const size_t at = (size_t)i * j->x.switches + j->matched->row[l];

			if (!(j->concerned[which[i]] & MIXED))
				continue;
			find_others(j, l, which[i], j->block[NOW][at], other);
			for (int k = 0; k < OTHERS; k++)
				j->block[FIRST_OTHER + k][at] = other[k];
		}
}

/* Repairs the concerned ones of up to AT_ONCE columns. */
static bool repair_block(struct job *j, uint32_t first)
{
	struct repair_state *x = &j->x;
	const uint32_t last = first + AT_ONCE < j->now->columns ? first + AT_ONCE : j->now->columns;
	uint32_t which[AT_ONCE], count = 0;

	for (uint32_t d = first; d < last; d++)
		if (j->concerned[d] && x->up[routes_end(x->plan, d)])
			which[count++] = d;
	if (count)
		fill_block(j, which, count);
	for (uint32_t i = 0; i < count; i++) {
		const size_t at = (size_t)i * x->switches;

		x->column = which[i];
		x->end = routes_end(x->plan, which[i]);
		x->covered = certificate_covers(x->plan, which[i]);
		x->clean = !(j->concerned[which[i]] & MIXED);
		x->now = j->block[NOW] + at;
		x->planned = j->block[PLANNED] + at;
		x->new = j->block[NEW] + at;
		for (int k = 0; k < OTHERS; k++)
			x->other[k] = j->block[FIRST_OTHER + k] + at;
		repair_one(j);
		for (uint32_t s = 0; s < x->switches; s++) {
			if (x->new[s] == x->now[s])
				continue;
			if (!next_of(j))
				return false;
			ROUTES_FILL(uint8_t, routes_row(j->next, j->next->forwarding, j->offset, s))[which[i]] = x->new[s];
			j->changed++;
		}
	}
	return true;
}

static bool repair_offset(struct job *j)
{
	list_lids(j);
	memset(j->x.uses, 0, (size_t)j->x.switches * j->x.wide * sizeof(*j->x.uses));
	if (!find_concerned(j))
		return true;
	repair_begin(&j->x);
	for (uint32_t first = 0; first < j->now->columns; first += AT_ONCE)
		if (!repair_block(j, first))
			return false;
	return true;
}

/* Completes the amended copy. */
static bool finish(struct job *j, double took)
{
	const struct amendment *before = j->now->amended;
	struct amendment *a = j->next->amended;
	struct matched *m = (struct matched *)(uintptr_t)j->matched;

	if (!a)
		return false;
	set_far_ends(j, ROUTES_FILL(uint32_t, j->next->far_ends));
	a->repairs = (before ? before->repairs : 0) + 1;
	a->entries = j->changed;
	a->later = j->later;
	a->dropping = j->dropping && !j->hopeless;
	a->milliseconds = took;
	a->replaced = m->replaced;
	a->replaced_row = m->replaced_row;
	a->replaced_by = m->replaced_by;
	m->replaced_row = NULL;
	m->replaced_by = NULL;
	return true;
}

static double milliseconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

struct routes *repair_routes(struct routes *now, const struct live *live, const struct known *known,
			     struct matched *matched, bool *hopeless, struct reason *why)
{
	struct job job = {.now = now, .live = live, .known = known, .matched = matched}, *j = &job;
	const double begun = milliseconds();
	bool good = make_room(j) && match_fabric(j);

	REASON(why, "no memory to repair the routes");
	for (; good && j->offset < now->offsets && j->offset < live->lids_per_port; j->offset++)
		good = repair_offset(j);
	good = good && (!(fabric_differs(j) || (j->later && !(now->amended && now->amended->later))) || next_of(j)) && (!j->next || finish(j, milliseconds() - begun));
	drop_room(j);
	*hopeless = j->hopeless;
	if (good) {
		*why = (struct reason){.text = ""};
		return j->next ? j->next : routes_hold(j->now);
	}
	routes_drop(j->next);
	return NULL;
}
