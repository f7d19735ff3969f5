/*
 * sweeps_run PLAN: what the plugin puts in force in one sweep after another, without OpenSM, for the judge in
 * tests/worlds/judge.py. PLAN is a routes file, which is in force in the first fabric. Commands on standard input, one a line;
 * GUIDs are hexadecimal:
 *   switch GUID PORTS LID, host GUID LID COUNT SWITCH PORT, cable SWITCH PORT SWITCH PORT   the fabric of this sweep
 *   silent SWITCH            it will not confirm what this sweep sends
 *   aged                     packets of older tables are gone
 *   restart                  OpenSM begins again with PLAN, and knows no table
 *   other SWITCH LID PORT    before this sweep, another engine has sent this entry (to all other switches and LIDs: none)
 *   go LMC
 * The answer: "kept" or "repaired" with ENTRIES LATER DROPPING UNROUTED FOLLOWS UNCONFIRMED, or "refused REASON"; then "table SWITCH"
 * with the entries by LID for each switch unless it is refused, then ".". FOLLOWS: the plugin requests another routing (follow.h). Cables that were not there in the last sweep are fresh.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "../certificate.h"
#include "../follow.h"

#define MOST 64
#define HOSTS 512
#define LIDS 1024

struct cable {
	uint64_t from, to;
	unsigned port, far_port;
};

struct sweep {
	struct live_switch sw[MOST];
	struct live_terminal end[HOSTS];
	uint64_t leaf[HOSTS];
	struct cable cable[MOST * 16];
	unsigned switches, terminals, cables;
	uint64_t silent_guid[MOST];
	unsigned silents;
	bool other;
};

static struct known known;
static struct routes *now, *plan;
static struct sweep sweep, last;
static uint32_t put_off; /* LIDs in the last sweep */
static uint8_t other[MOST][LIDS];
static bool ours = true, begins = true; /* the next sweep is the first of an OpenSM */

static int by_guid(const void *a, const void *b)
{
	const struct live_switch *x = a, *y = b;

	return x->guid < y->guid ? -1 : x->guid > y->guid;
}

static uint32_t index_of(const struct sweep *s, uint64_t guid)
{
	for (uint32_t i = 0; i < s->switches; i++)
		if (s->sw[i].guid == guid)
			return i;
	return NO_PEER;
}

static bool was_there(const struct cable *c)
{
	for (unsigned i = 0; i < last.cables; i++)
		if (!memcmp(&last.cable[i], c, sizeof(*c)))
			return true;
	return false;
}

static void make_live(struct live *live, unsigned lmc)
{
	uint32_t ports = 0;

	qsort(sweep.sw, sweep.switches, sizeof(*sweep.sw), by_guid);
	for (unsigned s = 0; s < sweep.switches; s++) {
		sweep.sw[s].first_port = ports;
		ports += sweep.sw[s].ports + 1u;
	}
	*live = (struct live){.switches = sweep.switches, .terminals = sweep.terminals, .sw = sweep.sw, .end = sweep.end,
			      .peer = malloc((ports + 1) * sizeof(*live->peer)), .peer_port = calloc(ports + 1, 1),
			      .fresh = calloc(ports + 1, 1), .lids_per_port = 1u << lmc, .data_lanes = 15, .sl2vl = true,
			      .qos = true};
	memset(live->peer, 0xff, (ports + 1) * sizeof(*live->peer));
	for (unsigned i = 0; i < sweep.cables; i++) {
		const struct cable *c = &sweep.cable[i];
		const uint32_t from = index_of(&sweep, c->from), to = index_of(&sweep, c->to);
		uint32_t a, b;

		if (from == NO_PEER || to == NO_PEER || from == to) /* a loopback cable is no link (live_osm.c) */
			continue;
		a = sweep.sw[from].first_port + c->port;
		b = sweep.sw[to].first_port + c->far_port;
		live->peer[a] = to, live->peer_port[a] = (uint8_t)c->far_port;
		live->peer[b] = from, live->peer_port[b] = (uint8_t)c->port;
		live->fresh[a] = live->fresh[b] = !was_there(c);
	}
	for (unsigned t = 0; t < sweep.terminals; t++)
		sweep.end[t].leaf = index_of(&sweep, sweep.leaf[t]);
}

static bool is_silent(uint64_t guid)
{
	for (unsigned i = 0; i < sweep.silents; i++)
		if (sweep.silent_guid[i] == guid)
			return true;
	return false;
}

/* As tables.c does for the switches of a sweep. */
static void see_switches(void)
{
	uint64_t guids[MOST];

	for (unsigned s = 0; s < sweep.switches; s++)
		guids[s] = sweep.sw[s].guid;
	if (!known_resize(&known, guids, sweep.switches, LIDS))
		abort();
	known.last = LIDS - 1;
}

static void send(const struct live *live, const struct tables *t)
{
	for (uint32_t s = 0; s < live->switches; s++) {
		known_sent(&known.sw[s], 0, t->entry + (size_t)s * LIDS, LIDS);
		if (!is_silent(live->sw[s].guid))
			known_confirmed(&known, &known.sw[s], 0, t->entry + (size_t)s * LIDS, LIDS);
	}
	for (uint32_t lid = 0; lid < LIDS; lid++)
		known.end[lid] = t->put_off[lid] ? known.end[lid] : 0;
	for (uint32_t d = 0; d < live->switches + live->terminals; d++) {
		const struct live_terminal *e = d < live->switches ? NULL : &live->end[d - live->switches];
		const struct live_switch *leaf = &live->sw[e ? e->leaf : d];

		for (unsigned lid = e ? e->lid_low : leaf->lid_low; lid <= (e ? e->lid_high : leaf->lid_high); lid++)
			if (!t->put_off[lid])
				known.end[lid] = leaf->guid;
	}
}

static void go(unsigned lmc)
{
	struct reason why = {.text = ""}, unrepaired = {.text = ""};
	uint32_t unconfirmed, blocks;
	struct tables tables;
	struct live live;
	struct own_task task = {.live = &live, .lids = LIDS};

	make_live(&live, lmc);
	see_switches();
	if (sweep.other) {
		for (uint32_t s = 0; s < live.switches; s++)
			known_confirmed(&known, &known.sw[s], 0, other[s], LIDS);
		known_forget_older(&known);
		ours = false;
	}
	task.known = known.begun ? &known : NULL;
	task.assumed = begins;
	begins = false;
	task.ours = ours;
	task.settled = follow_settled(task.known, ours ? put_off : 0);
	if (own_choose(&tables, &task, now, &unrepaired, &why)) {
		const struct amendment *a = tables.routes->amended;

		send(&live, &tables);
		known_count(&known, &unconfirmed, &blocks);
		printf("%s %u %u %d %u %d %u\n", tables.routes == now ? "kept" : "repaired",
		       a && tables.routes != now ? a->entries : 0, a ? a->later : 0, tables.drops, tables.put_off_count,
		       !unconfirmed && follow_needed(task.settled, &tables), unconfirmed);
		for (uint32_t s = 0; s < live.switches; s++) {
			printf("table %" PRIx64, live.sw[s].guid);
			for (unsigned lid = 1; lid < LIDS; lid++)
				if (tables.entry[(size_t)s * LIDS + lid] != ENTRY_NO_ROUTE)
					printf(" %u:%u", lid, tables.entry[(size_t)s * LIDS + lid]);
			printf("\n");
		}
		put_off = tables.put_off_count;
		routes_drop(now);
		now = routes_hold(tables.routes);
		ours = true;
	} else {
		printf("refused %s / %s\n", unrepaired.text, why.text);
	}
	printf(".\n");
	own_free(&tables);
	free(live.peer);
	free(live.peer_port);
	free(live.fresh);
	last = sweep;
	memset(&sweep, 0, sizeof(sweep));
	memset(other, ENTRY_NO_ROUTE, sizeof(other));
}

static void restart(void)
{
	known_free(&known);
	routes_drop(now);
	now = routes_hold(plan);
	begins = ours = true;
}

static bool command(const char *line)
{
	uint64_t a, b;
	unsigned p, q, lid, count;

	if (sscanf(line, "switch %" SCNx64 " %u %u", &a, &p, &lid) == 3 && sweep.switches < MOST)
		sweep.sw[sweep.switches++] = (struct live_switch){.guid = a, .name = "switch", .ports = (uint8_t)p,
								  .lid_low = (uint16_t)lid, .lid_high = (uint16_t)lid};
	else if (sscanf(line, "host %" SCNx64 " %u %u %" SCNx64 " %u", &a, &lid, &count, &b, &p) == 5 && sweep.terminals < HOSTS) {
		sweep.leaf[sweep.terminals] = b;
		sweep.end[sweep.terminals++] = (struct live_terminal){.guid = a, .leaf_port = (uint8_t)p, .lid_low = (uint16_t)lid,
								      .lid_high = (uint16_t)(lid + count - 1)};
	} else if (sscanf(line, "cable %" SCNx64 " %u %" SCNx64 " %u", &a, &p, &b, &q) == 4 && sweep.cables < MOST * 16)
		sweep.cable[sweep.cables++] = (struct cable){a, b, p, q};
	else if (sscanf(line, "silent %" SCNx64, &a) == 1 && sweep.silents < MOST)
		sweep.silent_guid[sweep.silents++] = a;
	else if (sscanf(line, "other %" SCNx64 " %u %u", &a, &lid, &p) == 3 && lid < LIDS && index_of(&sweep, a) != NO_PEER) {
		qsort(sweep.sw, sweep.switches, sizeof(*sweep.sw), by_guid); /* all switches come before */
		other[index_of(&sweep, a)][lid] = (uint8_t)p;
		sweep.other = true;
	} else if (!strcmp(line, "aged\n"))
		known_forget_older(&known);
	else if (!strcmp(line, "restart\n"))
		restart();
	else if (sscanf(line, "go %u", &p) == 1)
		go(p);
	else
		return false;
	fflush(stdout);
	return true;
}

int main(int count, char *arguments[])
{
	struct reason why = {.text = ""};
	char line[256];

	now = count == 2 ? routes_read(arguments[1], &why) : NULL;
	if (!now || !now->numbers)
		return fprintf(stderr, "%s\n", *why.text ? why.text : "no numbers"), 2;
	if (!certificate_holds(now, &why))
		return fprintf(stderr, "%s\n", why.text), 2;
	memset(other, ENTRY_NO_ROUTE, sizeof(other));
	plan = routes_hold(now);
	while (fgets(line, sizeof(line), stdin))
		if (!command(line))
			return fprintf(stderr, "unknown command: %s", line), 2;
	known_free(&known);
	routes_drop(now);
	routes_drop(plan);
	return 0;
}
