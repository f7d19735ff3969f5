/*
 * A routes file, and what happens to its fabric: reading, certificate, repair, fit and verification, sweep after sweep.
 * The first byte is the number of events, three bytes each (enum event); the rest is the file, whose checksums are set here.
 *
 * What is put in force is walked here again: no packet of a host circles, and none is dropped unless the plugin says so.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "../certificate.h"
#include "../crc32.h"
#include "../own.h"

#define LIDS 1024
#define MOST 24	   /* switches of a file */
#define HOSTS 48
#define MORE 2	   /* switches that are added */
#define NEW_PORTS 8

enum event { CUT, BACK, SWITCH, HOST, REPLACE, MOVE_CABLE, MOVE_HOST, NEW_SWITCH, SILENT, AGED, LID, OTHER_ENGINE, RESTART, SWEEP, EVENTS };

static struct routes *plan, *now;
static struct known known;
static bool ours, begins;

/* All that there is, dead or alive; rows of the file, then added switches. */
static struct {
	uint32_t switches, wide, lids;
	uint64_t guid[MOST + MORE];
	uint8_t ports[MOST + MORE];
	bool dead[MOST + MORE], silent[MOST + MORE], off[HOSTS];
	uint32_t leaf[HOSTS];
	uint8_t leaf_port[HOSTS];
	unsigned lid[HOSTS];
	uint32_t far[(MOST + MORE) * 256];
	bool cut[(MOST + MORE) * 256], fresh[(MOST + MORE) * 256], was[(MOST + MORE) * 256];
} world;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct routes *read_routes(const uint8_t *data, size_t size)
{
	uint8_t *image = malloc(size ? size : 1);
	const uint64_t length = size;
	struct reason why;
	uint32_t sum;

	if (!image)
		exit(2);
	memcpy(image, data, size);
	if (size >= ROUTES_HEADER_SIZE) {
		memcpy(image + 16, &length, sizeof(length));
		sum = sar_crc32(0, image + ROUTES_HEADER_SIZE, size - ROUTES_HEADER_SIZE);
		memcpy(image + 120, &sum, sizeof(sum));
		sum = sar_crc32(0, image, 124);
		memcpy(image + 124, &sum, sizeof(sum));
	}
	return routes_from_image(image, size, &why);
}

static bool build_world(void)
{
	memset(&world, 0, sizeof(world));
	world.switches = plan->switches;
	world.wide = plan->wide > NEW_PORTS ? plan->wide : NEW_PORTS + 1;
	for (world.lids = 1; world.lids < plan->offsets;)
		world.lids *= 2;
	if (plan->switches > MOST || plan->terminals > HOSTS ||
	    (plan->switches + MORE + plan->terminals + 1) * world.lids > LIDS)
		return false;
	memset(world.far, 0xff, sizeof(world.far));
	for (uint32_t s = 0; s < plan->switches; s++) {
		world.guid[s] = plan->switch_guid[s];
		world.ports[s] = plan->switch_ports[s];
		memcpy(world.far + s * world.wide, plan->far_ends + s * plan->wide, plan->wide * sizeof(*world.far));
	}
	for (uint32_t t = 0; t < plan->terminals; t++) {
		world.leaf[t] = plan->terminal_leaf[t];
		world.leaf_port[t] = routes_row(plan, plan->forwarding, 0, world.leaf[t])[t];
		world.lid[t] = (plan->switches + MORE + 1 + t) * world.lids;
		/* A host at a port with a cable, or at none, is nowhere. */
		world.off[t] = world.leaf_port[t] > world.ports[world.leaf[t]] ||
			       world.far[world.leaf[t] * world.wide + world.leaf_port[t]] != ROUTES_NO_SWITCH;
	}
	return true;
}

static bool is_free(uint32_t s, unsigned port)
{
	if (!port || port > world.ports[s] || world.far[s * world.wide + port] != ROUTES_NO_SWITCH)
		return false;
	for (uint32_t t = 0; t < plan->terminals; t++)
		if (!world.off[t] && world.leaf[t] == s && world.leaf_port[t] == port)
			return false;
	return true;
}

static void join(uint32_t s, unsigned p, uint32_t v, unsigned q)
{
	world.far[s * world.wide + p] = v << 8 | q;
	world.far[v * world.wide + q] = s << 8 | p;
}

/* Whether the cable at this place is live; `s` and `p` are in range. */
static bool is_live(uint32_t s, unsigned p)
{
	const uint32_t at = s * world.wide + p, far = world.far[at];

	return p <= world.ports[s] && far != ROUTES_NO_SWITCH && far >> 8 != s && !world.dead[s] && !world.dead[far >> 8] &&
	       !world.cut[at] && !world.cut[(far >> 8) * world.wide + (far & 255)];
}

static int by_guid(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return world.guid[*x] < world.guid[*y] ? -1 : world.guid[*x] > world.guid[*y];
}

static uint32_t row_of[MOST + MORE]; /* of each live switch */

static void make_live(struct live *live)
{
	uint32_t index[MOST + MORE];

	*live = (struct live){.sw = calloc(MOST + MORE, sizeof(*live->sw)), .end = calloc(HOSTS, sizeof(*live->end)),
			      .peer = malloc(sizeof(world.far)), .peer_port = calloc(1, sizeof(world.far)),
			      .fresh = calloc(1, sizeof(world.far)), .lids_per_port = world.lids, .data_lanes = 15, .sl2vl = true,
			      .qos = true};
	if (!live->sw || !live->end || !live->peer || !live->peer_port || !live->fresh)
		exit(2);
	memset(live->peer, 0xff, sizeof(world.far));
	for (uint32_t s = 0; s < world.switches; s++)
		if (!world.dead[s])
			row_of[live->switches++] = s;
	qsort(row_of, live->switches, sizeof(*row_of), by_guid);
	for (uint32_t i = 0; i < live->switches; i++) {
		const uint16_t lid = (uint16_t)((row_of[i] + 1) * world.lids);

		index[row_of[i]] = i;
		live->sw[i] = (struct live_switch){.guid = world.guid[row_of[i]], .name = "switch", .ports = world.ports[row_of[i]],
						   .first_port = row_of[i] * world.wide, .lid_low = lid,
						   .lid_high = (uint16_t)(lid + world.lids - 1)};
	}
	for (uint32_t s = 0; s < world.switches; s++)
		for (unsigned p = 1; p < world.wide; p++) {
			const uint32_t at = s * world.wide + p;

			if (is_live(s, p)) {
				live->peer[at] = index[world.far[at] >> 8];
				live->peer_port[at] = world.far[at] & 255;
				live->fresh[at] = !world.was[at];
			}
			world.was[at] = is_live(s, p);
		}
	for (uint32_t t = 0; t < plan->terminals; t++)
		if (!world.off[t] && !world.dead[world.leaf[t]])
			live->end[live->terminals++] = (struct live_terminal){
				.guid = plan->terminal_guid[t], .leaf = index[world.leaf[t]], .leaf_port = world.leaf_port[t],
				.lid_low = (uint16_t)world.lid[t], .lid_high = (uint16_t)(world.lid[t] + world.lids - 1)};
}

static void free_live(struct live *live)
{
	free(live->sw);
	free(live->end);
	free(live->peer);
	free(live->peer_port);
	free(live->fresh);
}

/* What the switches do with packets of hosts, by their tables alone. */
static void walk(const struct live *live, const struct tables *t)
{
	for (uint32_t n = 0; n < live->terminals; n++)
		for (unsigned lid = live->end[n].lid_low; lid <= live->end[n].lid_high; lid++)
			for (uint32_t from = 0; from < live->terminals; from++) {
				uint32_t here = live->end[from].leaf, hops = 0;

				while (here != live->end[n].leaf) {
					const uint8_t port = t->entry[here * t->lids + lid];
					const bool dropped = port > live->sw[here].ports ||
							     live->peer[live->sw[here].first_port + port] == NO_PEER;

					if ((dropped && !t->drops) || hops++ > live->switches)
						abort();
					if (dropped)
						break;
					here = live->peer[live->sw[here].first_port + port];
				}
			}
}

static void send(const struct live *live, const struct tables *t)
{
	for (uint32_t s = 0; s < live->switches; s++) {
		const uint8_t *entry = t->entry + (size_t)s * LIDS;

		known_sent(&known.sw[s], 0, entry, LIDS);
		if (!world.silent[row_of[s]])
			known_confirmed(&known, &known.sw[s], 0, entry, LIDS);
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
	known.begun = true;
}

static void sweep(void)
{
	struct reason why, unrepaired;
	struct tables t;
	struct live live;
	struct own_task task = {.live = &live, .assumed = begins, .ours = ours, .lids = LIDS};
	uint64_t guids[MOST + MORE];

	make_live(&live);
	for (uint32_t s = 0; s < live.switches; s++)
		guids[s] = live.sw[s].guid;
	if (!live.switches || !known_resize(&known, guids, live.switches, LIDS)) {
		free_live(&live);
		return;
	}
	known.last = LIDS - 1;
	task.known = known.begun ? &known : NULL;
	begins = false;
	if (own_choose(&t, &task, now, &unrepaired, &why)) {
		walk(&live, &t);
		send(&live, &t);
		ours = true;
		routes_drop(now);
		now = routes_hold(t.routes);
		own_free(&t);
	}
	memset(world.silent, 0, sizeof(world.silent));
	free_live(&live);
}

static void other_engine(uint8_t seed)
{
	uint8_t entry[LIDS];

	for (uint32_t s = 0; s < known.switches; s++) {
		for (unsigned lid = 0; lid < LIDS; lid++)
			entry[lid] = (uint8_t)((lid * seed + s * 7u) % 9u ? (lid + s * seed) % NEW_PORTS : ENTRY_NO_ROUTE);
		known_confirmed(&known, &known.sw[s], 0, entry, LIDS);
	}
	known_forget_older(&known);
	ours = false;
}

static void restart(void)
{
	known_free(&known);
	routes_drop(now);
	now = routes_hold(plan);
	begins = ours = true;
}

static void move_cable(uint32_t at, uint32_t to)
{
	const uint32_t far = world.far[at], other = world.far[to];

	if (far == ROUTES_NO_SWITCH || other == ROUTES_NO_SWITCH || at == to || other == (at / world.wide << 8 | at % world.wide))
		return;
	join(at / world.wide, at % world.wide, other >> 8, other & 255);
	join(to / world.wide, to % world.wide, far >> 8, far & 255);
	world.was[at] = world.was[to] = false;
}

static bool has_guid(uint64_t guid)
{
	for (uint32_t s = 0; s < world.switches; s++)
		if (world.guid[s] == guid)
			return true;
	return false;
}

static void new_switch(uint8_t a, uint8_t b)
{
	const uint32_t s = world.switches, v = a % world.switches;
	const uint64_t guid = plan->switch_guid[a % plan->switches] ^ (uint64_t)1 << 61 ^ (uint64_t)s << 48;

	if (s < plan->switches + MORE && !has_guid(guid)) {
		world.guid[s] = guid;
		world.ports[s] = NEW_PORTS;
		world.switches++;
	}
	for (unsigned p = 1; p <= NEW_PORTS; p++)
		if (is_free(world.switches - 1, p) && is_free(v, 1 + b % world.ports[v]) && v != world.switches - 1) {
			join(world.switches - 1, p, v, 1 + b % world.ports[v]);
			return;
		}
}

static void happen(enum event event, uint8_t a, uint8_t b)
{
	const uint32_t s = a % world.switches, t = a % plan->terminals, at = s * world.wide + b % world.wide, u = b % plan->terminals;
	const unsigned port = 1 + b % world.ports[s], lid = world.lid[t];

	if (event == CUT || event == BACK)
		world.cut[at] = event == CUT;
	else if (event == SWITCH)
		world.dead[s] = !world.dead[s];
	else if (event == HOST)
		world.off[t] = !world.off[t] || !is_free(world.leaf[t], world.leaf_port[t]);
	else if (event == REPLACE && !has_guid(world.guid[s] ^ (uint64_t)1 << 62))
		world.guid[s] ^= (uint64_t)1 << 62;
	else if (event == MOVE_CABLE)
		move_cable(at, (uint32_t)(b * 31 + a) % (world.switches * world.wide));
	else if (event == MOVE_HOST && is_free(s, port))
		world.leaf[t] = s, world.leaf_port[t] = (uint8_t)port, world.off[t] = false;
	else if (event == NEW_SWITCH)
		new_switch(a, b);
	else if (event == SILENT)
		world.silent[s] = true;
	else if (event == AGED)
		known_forget_older(&known);
	else if (event == LID)
		world.lid[t] = world.lid[u], world.lid[u] = lid;
	else if (event == OTHER_ENGINE)
		other_engine(b);
	else if (event == RESTART)
		restart();
	else
		sweep();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const size_t events = size ? data[0] % 64 : 0, begin = 1 + 3 * events;
	struct reason why;

	if (size < begin || !(plan = read_routes(data + begin, size - begin)))
		return 0;
	if (plan->numbers && certificate_holds(plan, &why) && !plan->had && build_world()) {
		now = routes_hold(plan);
		restart();
		sweep();
		for (size_t i = 0; i < events; i++)
			happen(data[1 + 3 * i] % EVENTS, data[2 + 3 * i], data[3 + 3 * i]);
		sweep();
		routes_drop(now);
		known_free(&known);
	}
	routes_drop(plan);
	return 0;
}
