/*
 * sweeps_run PLAN: what the plugin does in one sweep after another, with its own engine and events (fake_osm.h), for the judge in
 * tests/worlds/judge.py. PLAN is a routes file, which is in force in the first fabric. Commands on standard input, one a line;
 * GUIDs are hexadecimal:
 *   switch GUID PORTS LID, host GUID LID COUNT SWITCH PORT, cable SWITCH PORT SWITCH PORT   the fabric of this sweep
 *   silent SWITCH            it will not confirm what this sweep sends
 *   aged                     packets of older tables are gone
 *   restart                  OpenSM begins again with PLAN, and knows no table
 *   lost                     another subnet manager is master for a while
 *   has SWITCH LID PORT      it has set this entry
 *   answer FILE              in this sweep the agent loads it, if it is asked
 *   copied FILE              in this sweep the agent puts it in the place of PLAN then, and has no routes
 *   other SWITCH LID PORT    before this sweep, another engine has sent this entry (to all other switches and LIDs: none)
 *   follow                   time passes until the plugin asks for a routing
 *   go LMC
 * The answer to "follow": "asked SECONDS", or "idle". To "go": "kept", "repaired ENTRIES REPAIRS DROPS PUT_OFF GENERATION" or "refused", then
 * "error" with `last_error`, "table SWITCH" with the entries by LID for each switch unless it is refused, then ".". Cables that were not there in
 * the last sweep are fresh.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "fake_osm.h"

#define MOST FAKE_MOST
#define HOSTS 512
#define LIDS FAKE_LIDS
#define LONGEST 3600 /* s */

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

static struct fake_osm *osm;
static const char *plan;
static struct sweep sweep, last;
static uint8_t other[MOST * LIDS];
static unsigned lids_per_port;
static char answer[200];

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

static void link_switches(struct live *live)
{
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
}

static void *copy(const void *from, size_t size)
{
	void *to = malloc(size + 1);

	if (!to)
		abort();
	return memcpy(to, from, size);
}

bool live_from_osm(struct live *live, osm_switch_t ***sw, osm_opensm_t *of, struct reason *why)
{
	uint32_t ports = 0;

	(void)of, (void)why;
	for (unsigned s = 0; s < sweep.switches; s++) {
		sweep.sw[s].first_port = ports;
		ports += sweep.sw[s].ports + 1u;
	}
	for (unsigned t = 0; t < sweep.terminals; t++)
		sweep.end[t].leaf = index_of(&sweep, sweep.leaf[t]);
	*sw = copy(osm->sw, sizeof(osm->sw));
	*live = (struct live){.switches = sweep.switches, .terminals = sweep.terminals,
			      .sw = copy(sweep.sw, sizeof(sweep.sw)), .end = copy(sweep.end, sizeof(sweep.end)),
			      .peer = malloc((ports + 1) * sizeof(*live->peer)), .peer_port = calloc(ports + 1, 1),
			      .fresh = calloc(ports + 1, 1), .lids_per_port = lids_per_port, .data_lanes = 15, .sl2vl = true,
			      .qos = true};
	memset(live->peer, 0xff, (ports + 1) * sizeof(*live->peer));
	link_switches(live);
	return true;
}

static bool is_silent(uint64_t guid)
{
	for (unsigned i = 0; i < sweep.silents; i++)
		if (sweep.silent_guid[i] == guid)
			return true;
	return false;
}

static void discover(bool answered)
{
	uint64_t guids[MOST];
	uint8_t ports[MOST];
	bool silent[MOST];

	qsort(sweep.sw, sweep.switches, sizeof(*sweep.sw), by_guid);
	for (unsigned s = 0; s < sweep.switches; s++) {
		guids[s] = sweep.sw[s].guid;
		ports[s] = sweep.sw[s].ports;
		silent[s] = !answered && is_silent(guids[s]);
	}
	fake_discover(osm, guids, ports, silent, sweep.switches);
}

static void age(void)
{
	if (osm->bridge.tables.known.ages && osm->bridge.tables.older_gone_at > clock_seconds())
		fake_sleep(osm->bridge.tables.older_gone_at - clock_seconds());
}

static void tell(unsigned repairs)
{
	const struct tables *t = &osm->bridge.routing.in_force->tables;

	if (t->routes->amended && t->routes->amended->repairs != repairs)
		printf("repaired %u %u", osm->bridge.shared.amended_entries, osm->bridge.shared.amendments);
	else
		printf("kept 0 %u", osm->bridge.shared.amendments);
	printf(" %d %u %ju\nerror %s\n", osm->bridge.shared.repair_drops, t->put_off_count,
	       (uintmax_t)osm->bridge.shared.generation_in_force, osm->bridge.shared.last_error.text);
	for (uint32_t s = 0; s < osm->switches; s++) {
		printf("table %" PRIx64, sweep.sw[s].guid);
		for (unsigned lid = 1; lid < LIDS; lid++)
			if (osm->sw[s]->new_lft[lid] != ENTRY_NO_ROUTE)
				printf(" %u:%u", lid, osm->sw[s]->new_lft[lid]);
		printf("\n");
	}
}

static void go(unsigned lmc)
{
	const struct amendment *before = osm->bridge.shared.last_good ? osm->bridge.shared.last_good->amended : NULL;
	const unsigned repairs = before ? before->repairs : 0;

	lids_per_port = 1u << lmc;
	if (sweep.other) {
		discover(true);
		fake_route_other(osm, other);
		age();
	}
	discover(false);
	if (fake_route(osm))
		tell(repairs);
	else
		printf("refused\nerror %s\n", osm->bridge.shared.last_error.text);
	printf(".\n");
	last = sweep;
	memset(&sweep, 0, sizeof(sweep));
	memset(other, ENTRY_NO_ROUTE, sizeof(other));
}

/* As the thread of the socket does every second (socket_server.c). */
static void follow(void)
{
	const double begun = clock_seconds();

	for (int waited = 0; !fake_is_asked(osm) && osm->bridge.shared.follow_at && waited < LONGEST; waited++) {
		events_follow(&osm->bridge);
		if (!fake_is_asked(osm))
			fake_sleep(1);
	}
	if (fake_is_asked(osm))
		printf("asked %.1f\n", clock_seconds() - begun);
	else
		printf("idle\n");
}

static void restart(void)
{
	fake_end(osm);
	osm = fake_begin(plan);
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
		other[index_of(&sweep, a) * LIDS + lid] = (uint8_t)p;
		sweep.other = true;
	} else if (!strcmp(line, "aged\n"))
		age();
	else if (!strcmp(line, "follow\n"))
		follow();
	else if (!strcmp(line, "lost\n"))
		fake_lose_master(osm);
	else if (sscanf(line, "has %" SCNx64 " %u %u", &a, &lid, &p) == 3 && lid < LIDS && index_of(&last, a) != NO_PEER)
		fake_has(osm, index_of(&last, a))[lid] = (uint8_t)p;
	else if (sscanf(line, "answer %199s", answer) == 1)
		osm->answer = answer;
	else if (sscanf(line, "copied %199s", answer) == 1)
		osm->copied = answer;
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
	char line[256];

	if (count != 2)
		return fprintf(stderr, "usage: sweeps_run PLAN\n"), 2;
	plan = arguments[1];
	osm = fake_begin(plan);
	memset(other, ENTRY_NO_ROUTE, sizeof(other));
	while (fgets(line, sizeof(line), stdin))
		if (!command(line))
			return fprintf(stderr, "unknown command: %s", line), 2;
	fake_end(osm);
	return 0;
}
