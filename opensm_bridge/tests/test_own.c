/* What is put in force without a load, by what is known of the switches' tables. */
#include "../own.h"

#include "check.h"
#include "small.h"

#define LIDS 64

static struct small fabric;
static struct known known;

/* NULL if the routes are put in force, else the reason. */
static const char *verdict(const struct known *k, bool assumed)
{
	static struct reason why, unrepaired;
	struct own_task task = {.live = &fabric.live, .known = k, .assumed = assumed, .ours = true, .lids = LIDS};
	struct routes *r = small_numbered(1, 1);
	struct tables tables;
	const bool good = own_choose(&tables, &task, r, &unrepaired, &why);

	if (good)
		own_free(&tables);
	routes_drop(r);
	return good ? NULL : why.text;
}

/* At the start OpenSM knows no table. Only routes.sar is taken for what switches have; nothing else is proved then. */
static void nothing_known_is_not_proved(void)
{
	const char *why;

	small_fabric(&fabric);
	CHECK(!verdict(NULL, true), "routes.sar");
	why = verdict(NULL, false);
	CHECK(why && strstr(why, "nothing is known of the switches' tables"), "%s", why ? why : "put in force");
	fabric.peer[3] = fabric.peer[5 + 4] = NO_PEER; /* cut 0 - 1 */
	why = verdict(NULL, false);
	CHECK(why && strstr(why, "nothing is known of the switches' tables"), "%s", why ? why : "repaired");
}

/* No switch has answered yet: each has what was sent, or anything. */
static void nothing_confirmed(void)
{
	const uint64_t guids[] = {0x100, 0x101, 0x102};
	struct routes *r = small_numbered(1, 1);
	struct own_task task = {.live = &fabric.live, .assumed = true, .lids = LIDS};
	struct reason why, unrepaired;
	struct tables tables;
	const char *told;

	small_fabric(&fabric);
	CHECK(known_resize(&known, guids, SMALL_SWITCHES, LIDS), "memory");
	CHECK(own_choose(&tables, &task, r, &unrepaired, &why), "%s", why.text);
	for (uint32_t s = 0; s < SMALL_SWITCHES; s++)
		known_sent(&known.sw[s], 0, tables.entry + (size_t)s * LIDS, LIDS);
	CHECK(!verdict(&known, false), "the same again changes nothing");
	small_fabric(&fabric);
	fabric.peer[3] = fabric.peer[5 + 4] = NO_PEER;
	told = verdict(&known, false);
	CHECK(told, "repaired over tables that are not known");
	own_free(&tables);
	routes_drop(r);
	known_free(&known);
}

/* Channels of one number may wait for each other in a circle. Switch 1 sends to the host on switch 0 by switch 2, and is to send
 * directly; all channels of the file have the number 1. */
static void equal_numbers_prove_nothing(void)
{
	const uint64_t guids[] = {0x100, 0x101, 0x102};
	const uint32_t lid = 10;
	struct routes *r = small_numbered(1, 1);
	struct own_task task = {.live = &fabric.live, .assumed = true, .lids = LIDS};
	struct reason why, unrepaired;
	struct tables tables;
	const char *told;

	small_fabric(&fabric);
	CHECK(known_resize(&known, guids, SMALL_SWITCHES, LIDS), "memory");
	CHECK(own_choose(&tables, &task, r, &unrepaired, &why), "%s", why.text);
	for (uint32_t s = 0; s < SMALL_SWITCHES; s++)
		known_confirmed(&known, &known.sw[s], 0, tables.entry + (size_t)s * LIDS, LIDS);
	known.end[lid] = 0x100;
	CHECK(!verdict(&known, false), "nothing changes");
	known.sw[1].sent[lid] = known.sw[1].had[lid] = 3;
	told = verdict(&known, false);
	CHECK(told && strstr(told, "nothing proves that packets to LID 10"), "%s", told ? told : "put in force");
	own_free(&tables);
	routes_drop(r);
	known_free(&known);
}

/* Routes that an earlier step has left: `broken`, an entry of the first switch to the host on the second is gone. NULL if they stay
 * in force, else why not. `drops`: whether they are said to drop packets. */
static const char *left_by_a_step(bool broken, bool settled, bool *drops)
{
	static struct reason why, unrepaired;
	struct own_task task = {.live = &fabric.live, .assumed = true, .ours = true, .settled = settled, .lids = LIDS};
	struct routes *plan = small_numbered(1, 1), *r = small_routes(1, 1); /* without numbers: not repaired again */
	struct tables tables;
	bool good;

	small_fabric(&fabric);
	if (broken)
		*small_entry(r, 0, 0, 2) = ROUTES_NO_ROUTE;
	r->amended = calloc(1, sizeof(*r->amended));
	CHECK(r->amended, "memory");
	*r->amended = (struct amendment){.plan = plan, .repairs = 1, .later = 1, .dropping = true};
	good = own_choose(&tables, &task, r, &unrepaired, &why);
	*drops = good && tables.drops;
	if (good)
		own_free(&tables);
	routes_drop(r);
	return good ? NULL : why.text;
}

/* Packets may be dropped while something is waited for, and only then; and it is said only of entries that drop some. */
static void nothing_stays_dropped(void)
{
	const char *told;
	bool drops;

	told = left_by_a_step(true, false, &drops);
	CHECK(!told && drops, "%s", told ? told : "not said");
	told = left_by_a_step(true, true, &drops);
	CHECK(told && strstr(told, "drops packets of hosts"), "%s", told ? told : "dropped for ever");
	told = left_by_a_step(false, false, &drops);
	CHECK(!told && !drops, "%s", told ? told : "said, and nothing is dropped");
	told = left_by_a_step(false, true, &drops);
	CHECK(!told && !drops, "%s", told ? told : "said, and nothing is dropped");
}

/* Routes in several lanes are not repaired: they are refused with a reason, so that the agent is asked (plans.c). */
static void several_lanes_are_not_repaired(void)
{
	struct own_task task = {.live = &fabric.live, .assumed = true, .ours = true, .lids = LIDS};
	struct routes *r = small_numbered(1, 2);
	struct reason why, unrepaired;
	struct tables tables;

	small_fabric(&fabric);
	CHECK(own_choose(&tables, &task, r, &unrepaired, &why), "%s", why.text);
	own_free(&tables);
	fabric.peer[3] = fabric.peer[5 + 4] = NO_PEER; /* cut 0 - 1 */
	CHECK(!own_choose(&tables, &task, r, &unrepaired, &why) && strstr(why.text, "no live link"), "%s", why.text);
	routes_drop(r);
}

/* Another subnet manager was master: only what all switches have counts as the plugin's. A dead cable changes nothing of that. */
static void only_what_is_held(void)
{
	const uint64_t guids[] = {0x100, 0x101, 0x102};
	const uint32_t lid = 12; /* a host at switch 1 */
	struct routes *r = small_numbered(1, 1);
	struct own_task task = {.live = &fabric.live, .assumed = true, .held = true, .lids = LIDS};
	struct reason why, unrepaired;
	struct tables tables, again;

	small_fabric(&fabric);
	CHECK(known_resize(&known, guids, SMALL_SWITCHES, LIDS), "memory");
	CHECK(own_choose(&tables, &task, r, &unrepaired, &why), "%s", why.text);
	for (uint32_t s = 0; s < SMALL_SWITCHES; s++)
		known_confirmed(&known, &known.sw[s], 0, tables.entry + (size_t)s * LIDS, LIDS);
	task.known = &known;
	CHECK(own_choose(&again, &task, r, &unrepaired, &why), "%s", why.text);
	own_free(&again);
	known.sw[0].sent[lid] = known.sw[0].had[lid] = 4;
	CHECK(!own_choose(&again, &task, r, &unrepaired, &why) && strstr(why.text, "switches have other entries"), "%s", why.text);
	known_lost(&known.sw[0], lid, 1);
	CHECK(!own_choose(&again, &task, r, &unrepaired, &why) && strstr(why.text, "switches have other entries"), "%s", why.text);
	known_confirmed(&known, &known.sw[0], lid, tables.entry + lid, 1);
	fabric.peer[3] = fabric.peer[5 + 4] = NO_PEER; /* cut 0 - 1 */
	CHECK(!own_choose(&again, &task, r, &unrepaired, &why) && !strstr(why.text, "other entries"), "%s", why.text);
	own_free(&tables);
	routes_drop(r);
	known_free(&known);
}

int main(void)
{
	nothing_known_is_not_proved();
	nothing_confirmed();
	equal_numbers_prove_nothing();
	nothing_stays_dropped();
	several_lanes_are_not_repaired();
	only_what_is_held();
	return checked("own");
}
