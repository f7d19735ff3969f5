/*
 * Finds the columns that a change of the fabric concerns, and has each of them repaired (repair_column.c).
 *
 * A column is concerned if an entry of a live switch leads into a channel that is dead, or ends elsewhere than in the plan,
 * or if an earlier repair has changed it, because it may return to the plan now. So the work grows with what changed, except
 * for one look at each entry of the switches at dead channels, and one copy of the file.
 */
#include "repair_routes.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "repair_column.h"
#include "routes_write.h"

#define AT_ONCE 64 /* columns: one cache line of a row */

struct job {
	struct routes *now, *next;
	const struct live *live;
	struct matched *matched;
	const uint32_t *row; /* of each live switch */
	bool holes;	     /* entries without a route are to be repaired */
	uint8_t *concerned; /* [columns] of one offset */
	uint8_t *hosts;	    /* [switches] live hosts are there */
	uint8_t *block[3];  /* [AT_ONCE][switches] columns: in force, planned, new */
	uint8_t *after;	    /* [switches] a column after the next repair */
	struct reason *why;
	uint32_t changed, later;
	bool dropping, hopeless; /* hosts' packets are dropped until the next repair; or even then */
	struct repair_state x;
};

/* Room for one repair. */
static bool make_room(struct job *j)
{
	struct repair_state *x = &j->x;
	const struct routes *plan = j->now->amended ? j->now->amended->plan : j->now;
	const size_t s = plan->switches, ports = s * plan->wide, packets = 2 * s * plan->lanes;
	bool good = certificate_make(&x->who, plan);

	j->row = j->matched->row;
	x->up = j->matched->up;
	x->plan = plan;
	x->switches = plan->switches;
	x->wide = plan->wide;
#define ROOM(array, count) good = (array = calloc((count) + 1, sizeof(*(array)))) && good
	ROOM(j->concerned, plan->columns);
	ROOM(j->hosts, s);
	ROOM(j->after, s);
	for (int i = 0; i < 3; i++)
		ROOM(j->block[i], s * AT_ONCE);
	ROOM(x->far, ports);
	ROOM(x->rank, ports);
	ROOM(x->added, ports), ROOM(x->uses, ports);
	ROOM(x->counted, s);
	ROOM(x->reach, s), ROOM(x->reach_now, s);
	ROOM(x->rising, s);
	ROOM(x->held[0], s), ROOM(x->held[1], s);
	ROOM(x->needs, s);
	ROOM(x->arrival, s), ROOM(x->next_arrival, s);
	ROOM(x->child, s), ROOM(x->next_child, s);
	ROOM(x->broken, s), ROOM(x->order, s);
	ROOM(x->path, s), ROOM(x->chain, s), ROOM(x->found, s);
	ROOM(x->member, s), ROOM(x->inside, s);
	ROOM(x->suspect, s);
	ROOM(x->known, s);
	ROOM(x->sorted, ports);
	ROOM(x->stack, packets), ROOM(x->came_from, packets);
#undef ROOM
	return good;
}

static void drop_room(struct job *j)
{
	const struct repair_state *x = &j->x;
	void *const rooms[] = {
		j->concerned, j->hosts, j->after, j->block[0], j->block[1], j->block[2], x->far, x->rank, x->added, x->uses, x->counted, x->reach, x->reach_now, x->rising,
		x->held[0], x->held[1], x->needs, x->arrival, x->next_arrival, x->child, x->next_child,
		x->broken, x->order, x->path, x->chain, x->found, x->member, x->inside, x->known, x->suspect, x->sorted,
		x->stack, x->came_from};

	certificate_free(&j->x.who);
	for (size_t i = 0; i < sizeof(rooms) / sizeof(*rooms); i++)
		free(rooms[i]);
}

/* Sets `far` and `rank`: the cables that are where the plan has them. */
static void match_cables(struct job *j)
{
	struct repair_state *x = &j->x;
	const struct routes *plan = x->plan;

	for (uint32_t t = 0; t < j->live->terminals; t++)
		j->hosts[j->row[j->live->end[t].leaf]] = 1;
	memset(x->far, 0xff, (size_t)x->switches * x->wide * sizeof(*x->far));
	for (uint32_t s = 0; s < j->live->switches; s++)
		for (unsigned p = 1; p <= j->live->sw[s].ports && p < x->wide; p++) {
			const uint32_t at = j->live->sw[s].first_port + p, peer = j->live->peer[at];
			const size_t to = (size_t)j->row[s] * x->wide + p;

			if (peer != NO_PEER && plan->far_ends[to] == (j->row[peer] << 8 | j->live->peer_port[at]))
				x->far[to] = plan->far_ends[to];
		}
	for (size_t at = 0; at < (size_t)x->switches * x->wide; at++)
		for (unsigned lane = 0; lane < plan->lanes; lane++) {
			const uint32_t number = plan->numbers[(size_t)lane * x->switches * x->wide + at];

			x->rank[at] = number > x->rank[at] ? number : x->rank[at];
		}
}

/* The far end of a port in the amended file: none if the live cable ends elsewhere than planned. */
static uint32_t far_end(const struct job *j, uint32_t s, unsigned port)
{
	const struct routes *plan = j->x.plan;
	const size_t to = (size_t)j->row[s] * plan->wide + port;
	const uint32_t at = j->live->sw[s].first_port + port;

	return j->live->peer[at] != NO_PEER && j->x.far[to] == ROUTES_NO_SWITCH ? ROUTES_NO_SWITCH :
										  plan->far_ends[to];
}

static bool cables_differ(const struct job *j)
{
	for (uint32_t s = 0; s < j->live->switches; s++)
		for (unsigned p = 1; p <= j->live->sw[s].ports && p < j->x.wide; p++)
			if (j->now->far_ends[(size_t)j->row[s] * j->x.wide + p] != far_end(j, s, p))
				return true;
	return false;
}

static bool replacements_differ(const struct job *j)
{
	const struct amendment *a = j->now->amended;
	const struct matched *m = j->matched;

	return (a ? a->replaced : 0) != m->replaced ||
	       (m->replaced && (memcmp(a->replaced_row, m->replaced_row, m->replaced * sizeof(uint32_t)) ||
				memcmp(a->replaced_by, m->replaced_by, m->replaced * sizeof(uint64_t))));
}

/* Sets `concerned`; returns whether any column is. */
static bool find_concerned(struct job *j)
{
	const struct routes *now = j->now;
	struct repair_state *x = &j->x;
	uint8_t dead[256], any = 0;

	memset(j->concerned, 0, now->columns);
	j->x.suspects = 0;
	for (uint32_t s = 0; s < x->switches; s++) {
		const uint8_t *row = routes_row(now, now->forwarding, x->offset, s);
		const uint8_t *planned = routes_row(x->plan, x->plan->forwarding, x->offset, s);
		uint8_t most;
		bool differs;

		memset(dead, 0, sizeof(dead));
		most = dead[ROUTES_NO_ROUTE] = j->holes;
		for (unsigned p = 1; p < x->wide; p++)
			if (x->plan->far_ends[(size_t)s * x->wide + p] != ROUTES_NO_SWITCH)
				most |= dead[p] = x->far[(size_t)s * x->wide + p] == ROUTES_NO_SWITCH;
		if (!x->up[s])
			continue;
		differs = now->amended && memcmp(row, planned, now->columns);
		if (most || differs)
			x->suspect[x->suspects++] = s;
		for (uint32_t d = 0; most && d < now->columns; d++)
			any |= j->concerned[d] |= dead[row[d]];
		for (uint32_t d = 0; differs && d < now->columns; d++)
			any |= j->concerned[d] |= row[d] != planned[d];
	}
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

/* Whether all live hosts reach the end by these entries. */
static bool all_arrive(struct job *j, const uint8_t *entry)
{
	bool all = true;

	repair_follow(&j->x, entry, j->x.reach);
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
	struct repair_state *x = &j->x;
	uint8_t *first = x->new;
	const uint8_t *now = x->now;
	bool sound;

	x->restores = j->now->amended ? RESTORE_ALL : RESTORE_NONE;
	repair_column(x);
	j->later += x->later;
	sound = x->sound;
	if (x->later && x->covered && !all_arrive(j, first)) {
		repair_end_column(x);
		x->now = first;
		x->new = j->after;
		x->restores = RESTORE_ALL;
		repair_column(x);
		if (all_arrive(j, j->after))
			j->dropping = true;
		else
			j->hopeless = true;
		x->now = now;
		x->new = first;
		x->sound = sound;
	}
	repair_end_column(x);
}

/* Repairs the concerned ones of up to AT_ONCE columns. */
static bool repair_block(struct job *j, uint32_t first)
{
	const struct routes *now = j->now, *plan = j->x.plan;
	struct repair_state *x = &j->x;
	const uint32_t last = first + AT_ONCE < now->columns ? first + AT_ONCE : now->columns;
	uint32_t which[AT_ONCE], count = 0;

	for (uint32_t d = first; d < last; d++)
		if (j->concerned[d] && x->up[routes_end(plan, d)])
			which[count++] = d;
	for (uint32_t s = 0; count && s < x->switches; s++)
		for (uint32_t i = 0; i < count; i++) {
			j->block[0][(size_t)i * x->switches + s] =
				routes_row(now, now->forwarding, x->offset, s)[which[i]];
			if (now->amended)
				j->block[1][(size_t)i * x->switches + s] =
					routes_row(plan, plan->forwarding, x->offset, s)[which[i]];
		}
	for (uint32_t i = 0; i < count; i++) {
		x->column = which[i];
		x->end = routes_end(plan, which[i]);
		x->covered = certificate_covers(plan, which[i]);
		x->now = j->block[0] + (size_t)i * x->switches;
		x->planned = j->block[now->amended != NULL] + (size_t)i * x->switches;
		x->new = j->block[2] + (size_t)i * x->switches;
		repair_one(j);
		if (!x->sound)
			return REASON_OF(j->why, "stale", "no sound way to 0x%016" PRIx64 " was found",
					 which[i] < plan->terminals ? plan->terminal_guid[which[i]] :
								      plan->switch_guid[x->end]), false;
		for (uint32_t m = 0; m < x->members; m++) {
			const uint32_t s = x->member[m];

			if (x->new[s] == x->now[s])
				continue;
			if (!next_of(j))
				return false;
			ROUTES_FILL(uint8_t, routes_row(j->next, j->next->forwarding, x->offset, s))[which[i]] =
				x->new[s];
			j->changed++;
		}
	}
	return true;
}

static bool repair_offset(struct job *j)
{
	if (!find_concerned(j))
		return true;
	memset(j->x.counted, 0, j->x.switches);
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

	if (!a)
		return false;
	for (uint32_t s = 0; s < j->live->switches; s++)
		for (unsigned p = 1; p <= j->live->sw[s].ports && p < j->x.wide; p++)
			ROUTES_FILL(uint32_t, j->next->far_ends)[(size_t)j->row[s] * j->x.wide + p] = far_end(j, s, p);
	a->repairs = (before ? before->repairs : 0) + 1;
	a->entries = j->changed;
	a->later = j->later;
	a->dropping = j->dropping && !j->hopeless;
	a->milliseconds = took;
	a->replaced = j->matched->replaced;
	a->replaced_row = j->matched->replaced_row;
	a->replaced_by = j->matched->replaced_by;
	j->matched->replaced_row = NULL;
	j->matched->replaced_by = NULL;
	return true;
}

static double milliseconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

struct routes *repair_routes(struct routes *now, const struct repair_task *task, bool *hopeless, struct reason *why)
{
	struct job job = {.now = now, .live = task->live, .matched = task->matched, .holes = task->holes, .why = why}, *j = &job;
	const double begun = milliseconds();
	bool good = make_room(j);

	REASON(j->why, "no memory to repair the routes");
	if (good) {
		match_cables(j);
		for (unsigned o = 0; good && o < j->now->offsets && o < j->live->lids_per_port; o++) {
			j->x.offset = o;
			good = repair_offset(j);
		}
		good = good && (!(cables_differ(j) || replacements_differ(j)) || next_of(j));
		good = good && (!j->next || finish(j, milliseconds() - begun));
	}
	drop_room(j);
	*hopeless = j->hopeless;
	if (good) {
		*j->why = (struct reason){.text = ""};
		return j->next ? j->next : routes_hold(j->now);
	}
	routes_drop(j->next);
	return NULL;
}
