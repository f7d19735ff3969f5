/*
 * Derives the known contents of the switches' tables (known.h) from OpenSM's tables.
 *
 * What OpenSM does (3.3.23, osm_ucast_mgr.c): at the start of a routing it fills `new_lft` of every switch with "no route",
 * and a routing engine fills in its routes. Then each block that differs from `lft` is zeroed in `lft` and sent, and the
 * switch's answer is copied into `lft`. So between two routings `new_lft` holds what was sent last, and a block of `lft`
 * holds what the switch confirmed, or zero. OpenSM never reads the tables that a switch had before.
 *
 * tables_look() must run whenever information may be lost: at the start of a sweep (after a routing whose MADs failed,
 * OpenSM starts a sweep and another routing without reporting that the first is over), after discovery (which shows the
 * switches that were reset: OpenSM sends them everything in the next routing), at the start and the end of a routing, and
 * for a dump.
 *
 * **Weak spot:** all this is read from the source of 3.3.23; plugin.c compares versions and layouts, not this. If `lft` held
 * what was sent before it was answered, or if `new_lft` changed after it was sent, entries would count as confirmed that no switch
 * has, and repairs would be verified over them.
 *
 * The caller holds `tables`, and either runs in OpenSM's sweep thread while no MAD is outstanding or holds OpenSM's lock.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bridge.h"
#include "clock.h"
#include "guid.h"

#define ASSUMED_HOPS 64 /* hops of a route, before any of ours was in force */

static bool all_are(const uint8_t *block, uint8_t value)
{
	for (unsigned i = 0; i < KNOWN_BLOCK; i++)
		if (block[i] != value)
			return false;
	return true;
}

/*
 * Whether a switch is new, or has lost its tables. OpenSM sets `need_update`, and so sends everything again, where a cable has
 * died, too; but a port that is armed or active has not been reset. **Weak spot:** inferred from 3.3.23, and tried with ibsim.
 */
static bool was_reset(const osm_switch_t *sw)
{
	bool up = false;

	for (unsigned p = 1; p < sw->num_ports; p++) {
		const osm_physp_t *port = osm_node_get_physp_ptr(sw->p_node, p);

		up = up || (port && osm_physp_get_port_state(port) > IB_LINK_INIT);
	}
	return sw->need_update && !up;
}

/* `sent`: `new_lft` holds what was sent last. */
static void look_at(struct bridge *b, struct known_switch *known, const osm_switch_t *sw, bool sent)
{
	const uint32_t size = sw->lft && sw->lft_size < b->tables.known.lids ? sw->lft_size : b->tables.known.lids;

	for (uint32_t at = 0; sw->lft && at + KNOWN_BLOCK <= size; at += KNOWN_BLOCK) {
		const uint8_t *now = sw->lft + at, *new = sent && sw->new_lft ? sw->new_lft + at : NULL;

		/* A block of 255 is freshly allocated or confirmed; the look after a routing can tell which. */
		if (new && !memcmp(now, new, KNOWN_BLOCK)) {
			known_confirmed(&b->tables.known, known, at, now, KNOWN_BLOCK);
			continue;
		}
		if (!all_are(now, 0) && !all_are(now, ENTRY_NO_ROUTE))
			known_confirmed(&b->tables.known, known, at, now, KNOWN_BLOCK);
		b->tables.known.begun = b->tables.known.begun || new;
		if (new)
			known_sent(known, at, new, KNOWN_BLOCK);
		else if (!sent && !b->tables.looked && all_are(now, 0))
			known_lost(known, at, KNOWN_BLOCK); /* it is unknown what was sent */
	}
}

static bool make_room(struct bridge *b)
{
	const osm_subn_t *subn = &b->osm->subn;
	uint64_t *guids = calloc(cl_qmap_count(&subn->sw_guid_tbl) + 1, sizeof(*guids));
	uint32_t count = 0, lids = 0;
	bool good;

	/* OpenSM's map is sorted by GUIDs in network byte order, `known` by GUIDs in host byte order. */
	EACH_SWITCH(sw, subn) {
		if (!guids)
			break;
		guids[count++] = cl_ntoh64(osm_node_get_node_guid(sw->p_node));
		lids = sw->lft_size > lids ? sw->lft_size : lids;
	}
	if (guids)
		qsort(guids, count, sizeof(*guids), guid_order);
	good = guids && known_resize(&b->tables.known, guids, count, lids);
	if (!guids)
		known_free(&b->tables.known);
	b->tables.known.last = cl_ptr_vector_get_size(&subn->port_lid_tbl) ? (uint32_t)cl_ptr_vector_get_size(&subn->port_lid_tbl) - 1 : 0;
	free(guids);
	return good;
}

static struct known_switch *known_of(struct bridge *b, const osm_switch_t *sw)
{
	/* make_room() has added it */
	return known_find(&b->tables.known, cl_ntoh64(osm_node_get_node_guid(sw->p_node)));
}

double tables_head_of_queue(const osm_subn_opt_t *o)
{
	const unsigned code = o->head_of_queue_lifetime > o->leaf_head_of_queue_lifetime ?
				      o->head_of_queue_lifetime : o->leaf_head_of_queue_lifetime;

	return code >= 20 ? -1 : 4.096e-6 * (double)(1u << code);
}

/*
 * Packets that came by an older entry are gone after the head-of-queue lifetime for each hop of the longest route, and once more
 * for the queue where they are (as in sar_agent/install/recent.py). **Weak spot:** what OpenSM would set, not what switches do.
 */
static double packet_life(const struct bridge *b)
{
	const double once = tables_head_of_queue(&b->osm->subn.opt);

	return once < 0 ? HUGE_VAL : once * (2 + (b->tables.longest ? b->tables.longest : ASSUMED_HOPS));
}

void tables_look(struct bridge *b, enum look when)
{
	const osm_subn_t *subn = &b->osm->subn;
	const struct osm_routing_engine *used = b->osm->routing_engine_used;
	/* No engine is in use if all have failed; then `new_lft` was never sent. */
	const bool sent = when != LOOK_ROUTING && used;
	bool ages;

	b->tables.routings += when == LOOK_DONE && b->tables.looked;
	if (!make_room(b))
		return;
	if (b->tables.known.ages && clock_seconds() >= b->tables.older_gone_at)
		known_forget_older(&b->tables.known);
	ages = b->tables.known.ages;
	b->tables.known.ages = false;
	EACH_SWITCH(sw, subn) {
		struct known_switch *known = known_of(b, sw);

		if (when == LOOK_DISCOVERED && was_reset(sw)) {
			known_lost(known, 0, b->tables.known.lids);
			known->reset_before = b->tables.routings + 1;
		}
		if (b->tables.routings >= known->reset_before || (b->tables.expected && when == LOOK_ROUTING))
			look_at(b, known, sw, sent);
	}
	if (b->tables.known.ages) /* entries were replaced since the last look */
		b->tables.older_gone_at = clock_seconds() + packet_life(b);
	b->tables.known.ages = b->tables.known.ages || ages;
	if (when == LOOK_ROUTING) {
		b->tables.routings++;
		b->tables.looked = b->tables.expected = false;
	} else if (sent) {
		const bool ours = used->name && !strcmp(used->name, SAR_ENGINE) && b->routing.in_force;

		snprintf(b->tables.known_engine, sizeof(b->tables.known_engine), "%s", used->name ? used->name : "none");
		b->tables.known_generation = ours ? b->routing.in_force->tables.routes->generation : 0;
		b->tables.looked = true;
	}
}

/*
 * Forgets everything: another SM may have changed all tables. OpenSM keeps its copies of its former tables; they are not looked
 * at before the next routing has replaced them, unless they were read back. **Weak spot:** that this routing sends every block, which
 * 3.3.23 does when it comes out of standby. A block that was not sent would count as confirmed with the contents of the copy.
 */
void tables_forget(struct bridge *b)
{
	struct known *k = &b->tables.known;

	for (uint32_t s = 0; s < k->switches; s++) {
		known_lost(&k->sw[s], 0, k->lids);
		k->sw[s].reset_before = b->tables.routings + 1;
	}
	if (k->end)
		memset(k->end, 0, k->lids * sizeof(*k->end));
	k->begun = k->ages = b->tables.looked = false;
}

void tables_expect(struct bridge *b)
{
	b->tables.expected = true;
	snprintf(b->tables.known_engine, sizeof(b->tables.known_engine), "unknown");
	b->tables.known_generation = 0;
}

/* A hash of what else is in force: the engine, the generation, and the lanes of the plugin's own routes. */
static uint64_t seed(struct bridge *b)
{
	uint64_t hash = b->tables.known_generation;

	for (const char *c = b->tables.known_engine; *c; c++)
		hash = hash_mix(hash, (uint8_t)*c);
	return b->tables.known_generation ? lanes_digest(b, hash) : hash;
}

uint64_t tables_digest(struct bridge *b, const struct live *live)
{
	return known_digest(&b->tables.known, live, seed(b));
}

const struct known *tables_known(struct bridge *b, const struct live *live)
{
	const struct known *k = &b->tables.known;

	if (!k->begun)
		return NULL;
	for (uint32_t s = 0; s < live->switches; s++)
		if (k->switches != live->switches || k->sw[s].guid != live->sw[s].guid) /* cannot happen, but for lack of memory */
			return NULL;
	return k;
}

void tables_note_ends(struct bridge *b, const struct install *i)
{
	struct known *k = &b->tables.known;

	if (i->tables.fit.longest > b->tables.longest)
		b->tables.longest = i->tables.fit.longest;
	for (uint32_t lid = 0; lid < k->lids && lid < i->tables.lids; lid++)
		k->end[lid] = i->tables.put_off[lid] ? k->end[lid] : 0;
	for (uint32_t d = 0; d < live_destinations(&i->live); d++) {
		const struct live_destination to = live_destination(&i->live, d);

		for (unsigned lid = to.low; lid <= to.high; lid++)
			if (lid < k->lids && lid < i->tables.lids && !i->tables.put_off[lid])
				k->end[lid] = i->live.sw[to.leaf].guid;
	}
}
