/* Certificates, and repairs of the small fabric: three switches in a triangle, the third without hosts. */
#include "../fit.h"
#include "../certificate.h"
#include "../repair.h"

#include "check.h"
#include "small.h"

static struct small fabric;

/* Up to the third switch, then down: 0 -> 2 and 1 -> 2 have small numbers, 2 -> 0 and 2 -> 1 large ones. */
static struct routes *numbered(unsigned offsets, unsigned lanes)
{
	static const uint32_t number[SMALL_SWITCHES][5] = {
		{0, 0, 0, 2, 1}, {0, 0, 0, 1, 5}, {0, 0, 0, 6, 7}};
	struct routes *r = small_numbered(offsets, lanes);

	for (unsigned lane = 0; lane < lanes; lane++)
		memcpy(ROUTES_FILL(uint32_t, r->numbers) + lane * SMALL_SWITCHES * 5, number, sizeof(number));
	routes_seal(r);
	return r;
}

/* NULL if the certificate holds, else the reason. */
static const char *verdict(const struct routes *r)
{
	static struct reason why;

	return certificate_holds(r, &why) ? NULL : why.text;
}

static void expect(const char *got, const char *wanted)
{
	CHECK(got && strstr(got, wanted), "\"%s\" instead of \"%s\"", got ? got : "holds", wanted);
}

static void numbers_must_rise(void)
{
	struct routes *r = numbered(1, 1);

	CHECK(!verdict(r), "one channel a path");
	ROUTES_FILL(uint32_t, r->numbers)[3] = 0;
	expect(verdict(r), "0x0000000000000100 by port 3 in lane 0 has no number");
	routes_drop(r);
	r = numbered(1, 1);
	*small_entry(r, 0, 0, 2) = 4; /* 0 -> 2 -> 1 */
	CHECK(!verdict(r), "rises");
	ROUTES_FILL(uint32_t, r->numbers)[4] = 7;
	expect(verdict(r), "0x0000000000000102 by port 4 in lane 0 has no larger number");
	ROUTES_FILL(uint32_t, r->far_ends)[4] = ROUTES_NO_SWITCH;
	expect(verdict(r), "does not end at a switch");
	routes_drop(r);
	r = numbered(1, 1);
	*small_entry(r, 0, 2, 0) = 4; /* 2 -> 1 -> 2: nobody sends there */
	*small_entry(r, 0, 1, 0) = ROUTES_NO_ROUTE;
	CHECK(!verdict(r), "only paths of hosts count, and a dropped packet waits for nothing");
	ROUTES_FILL(uint8_t, r->senders)[2] = 1;
	CHECK(!verdict(r), "it is dropped at 1");
	*small_entry(r, 0, 1, 0) = 3;
	CHECK(verdict(r), "a loop never rises");
	routes_drop(r);
}

static void lanes_have_their_own_numbers(void)
{
	struct routes *r = numbered(2, 2);

	CHECK(!verdict(r), "holds");
	ROUTES_FILL(uint32_t, r->numbers)[SMALL_SWITCHES * 5 + 3] = 0;
	CHECK(!verdict(r), "all levels are in lane 0");
	*ROUTES_FILL(uint8_t, routes_row(r, r->service_levels, 1, 0) + 2) = 1;
	expect(verdict(r), "lane 1 has no number");
	ROUTES_FILL(uint8_t, r->sl_to_vl)[1] = ROUTES_DROPPED;
	CHECK(!verdict(r), "a dropped level goes nowhere");
	routes_drop(r);
}

/* Whether routes fit the live fabric: NULL, or why not. */
static const char *fits(const struct routes *r)
{
	static struct reason why;
	struct fit fit;
	const bool good = fit_find(&fit, r, &fabric.live, &why);

	fit_free(&fit);
	return good ? NULL : why.text;
}

/* The walk over the live fabric sees paths of hosts that do not rise, too: it is what verifies a repair. */
static void live_paths_must_rise(void)
{
	struct routes *r = numbered(2, 1);

	small_fabric(&fabric);
	fabric.live.lids_per_port = 2;
	CHECK(!fits(r), "%s", fits(r));
	for (uint32_t column = 0; column < r->columns; column++)
		for (unsigned offset = 0; offset < 2; offset++)
			if (routes_covers(r, column) && routes_end(r, column) == 1) {
				uint8_t *entry = small_entry(r, offset, 0, column);

				*entry = 4; /* by the third switch */
				CHECK(!verdict(r) && !fits(r), "rises");
				ROUTES_FILL(uint32_t, r->numbers)[4] = 8;
				expect(verdict(r), "no larger number");
				expect(fits(r), "the certificate does not hold");
				ROUTES_FILL(uint32_t, r->numbers)[4] = 1;
				*entry = 3;
			}
	ROUTES_FILL(uint32_t, r->numbers)[3] = 0;
	expect(fits(r), "the certificate does not hold");
	routes_drop(r);
}

/* The repaired routes, which must fit; drops `now`. */
static struct routes *repaired(struct routes *now)
{
	struct reason why = {.text = ""};
	struct routes *next = repair(now, &fabric.live, NULL, &why);
	struct fit fit;

	CHECK(next, "%s", why.text);
	routes_drop(now);
	if (!next)
		return NULL;
	CHECK(fit_find(&fit, next, &fabric.live, &why), "%s", why.text);
	fit_free(&fit);
	CHECK(!verdict(next), "an amended file has a certificate, too");
	return next;
}

static void cut(void)
{
	fabric.peer[3] = fabric.peer[5 + 4] = NO_PEER; /* 0 - 1 */
}

static void nothing_changes_in_the_fabric_of_the_plan(void)
{
	struct routes *plan = numbered(2, 1), *same;
	struct reason why = {.text = ""};

	small_fabric(&fabric);
	same = repair(plan, &fabric.live, NULL, &why);
	CHECK(same == plan && !plan->amended, "%s", why.text);
	routes_drop(same);
	routes_drop(plan);
}

static void a_cable(void)
{
	struct routes *plan = numbered(1, 1), *now;

	small_fabric(&fabric);
	cut();
	now = repaired(routes_hold(plan));
	/* Two terminals and the switch's own LID, both ways. */
	CHECK(now && now->amended && now->amended->entries == 6 && now->amended->repairs == 1, "entries");
	CHECK(now && *small_entry(now, 0, 0, 2) == 4 && *small_entry(now, 0, 1, 0) == 3, "by the third switch");
	CHECK(now && now->generation == plan->generation && !now->amended->later, "complete");
	now = repaired(now);
	CHECK(now && now->amended->repairs == 1, "the second time nothing changes");
	small_fabric(&fabric);
	now = repaired(now);
	CHECK(now && now->amended->repairs == 2 && !memcmp(now->image, plan->image, plan->size),
	      "the plan is in force again");
	routes_drop(now);
	routes_drop(plan);
}

static void no_way_is_invented(void)
{
	struct routes *plan = numbered(1, 1), *next;
	struct reason why = {.text = ""};
	struct fit fit;

	ROUTES_FILL(uint32_t, plan->numbers)[4] = 0; /* 0 -> 2 may not be used */
	routes_seal(plan);
	small_fabric(&fabric);
	cut();
	next = repair(plan, &fabric.live, NULL, &why);
	CHECK(next && !fit_find(&fit, next, &fabric.live, &why), "0 does not reach 1");
	if (next)
		fit_free(&fit);
	CHECK(strstr(why.text, "no route"), "%s", why.text);
	routes_drop(next);
	routes_drop(plan);
}

static void a_moved_cable_is_not_used(void)
{
	struct routes *now = numbered(1, 1);

	small_fabric(&fabric);
	fabric.peer_port[3] = 1; /* 0 - 1 ends at another port of 1 */
	fabric.peer[5 + 1] = 0;
	fabric.peer_port[5 + 1] = 3;
	fabric.peer[5 + 4] = NO_PEER;
	now = repaired(now);
	CHECK(now && *small_entry(now, 0, 0, 2) == 4, "by the third switch");
	routes_drop(now);
}

/* Another switch in the place of the third: the routes do not have it, so the agent is asked. */
static void a_replaced_switch(void)
{
	struct routes *now = numbered(1, 1), *next;
	struct reason why = {.text = ""};

	small_fabric(&fabric);
	fabric.sw[2].guid = 0x999;
	next = repair(now, &fabric.live, NULL, &why);
	CHECK(!next && strstr(why.text, "switch 0x0000000000000999") && strstr(why.text, "is not in the routes file"), "%s", why.text);
	CHECK(why.code && !strcmp(why.code, "stale"), "the agent is asked");
	routes_drop(now);
}

static void a_switch_without_hosts_is_gone(void)
{
	struct routes *now = numbered(1, 1);

	small_fabric(&fabric);
	fabric.live.switches = 2;
	fabric.peer[4] = fabric.peer[5 + 3] = NO_PEER;
	now = repaired(now);
	CHECK(now && !now->amended, "no path of a host leads through it");
	routes_drop(now);
}

int main(void)
{
	numbers_must_rise();
	lanes_have_their_own_numbers();
	live_paths_must_rise();
	nothing_changes_in_the_fabric_of_the_plan();
	a_cable();
	no_way_is_invented();
	a_moved_cable_is_not_used();
	a_replaced_switch();
	a_switch_without_hosts_is_gone();
	return checked("repair");
}
