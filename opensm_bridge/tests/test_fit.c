/* Which routes may be installed in which live fabric. */
#include "../fit.h"

#include "check.h"
#include "small.h"

static struct small fabric;

/* The egress port at live switch `s` for live terminal `t`. */
static uint8_t fit_port(const struct fit *fit, const struct routes *routes,
			       const struct live *live, unsigned offset, uint32_t s, uint32_t t)
{
	if (live->end[t].leaf == s)
		return live->end[t].leaf_port;
	return routes_row(routes, routes->forwarding, offset, fit->row[s])[fit->column[t]];
}

/* Returns NULL if the routes fit, else the reason. Drops `r`. */
static const char *verdict(struct routes *r, struct fit *kept)
{
	static struct reason why;
	struct fit fit;
	const bool fits = fit_find(&fit, r, &fabric.live, &why);

	if (kept)
		*kept = (struct fit){.unknown = fit.unknown, .vanished = fit.vanished};
	fit_free(&fit);
	routes_drop(r);
	return fits ? NULL : why.text;
}

static void expect(const char *got, const char *wanted)
{
	CHECK(got && strstr(got, wanted), "\"%s\" instead of \"%s\"", got ? got : "fits", wanted);
}

static void the_fabric_of_the_plan_fits(void)
{
	struct fit fit;

	small_fabric(&fabric);
	CHECK(!verdict(small_routes(1, 1), &fit), "must fit");
	CHECK(!fit.unknown && !fit.vanished, "all are known");
	fabric.live.lids_per_port = 4; /* more LIDs than the file has offsets */
	CHECK(!verdict(small_routes(2, 1), NULL), "must fit");
}

static void dead_links_and_holes(void)
{
	struct routes *r = small_routes(1, 1);

	small_fabric(&fabric);
	fabric.peer[3] = fabric.peer[5 + 4] = NO_PEER; /* cut 0 - 1 */
	expect(verdict(small_routes(1, 1), NULL), "by port 4, which has no live link");
	small_fabric(&fabric);
	*small_entry(r, 0, 2, 0) = ROUTES_NO_ROUTE;
	expect(verdict(r, NULL), "has no route");
}

/* A repair has left the third switch, which has no hosts, without a route; packets of hosts must not be led there. */
static void no_packet_of_a_host_ends_in_a_drop(void)
{
	for (int last = 0; last < 2; last++) {
		struct routes *r = small_routes(1, 1);

		r->amended = calloc(1, sizeof(*r->amended));
		r->amended->plan = small_routes(1, 1);
		small_fabric(&fabric);
		*small_entry(r, 0, 2, 0) = ROUTES_NO_ROUTE;
		*small_entry(r, 0, 1, 0) = 3; /* by the third switch */
		if (last)
			small_rotate(&fabric); /* the third switch is looked at first */
		expect(verdict(r, NULL), "to 0x0000000000000200 are dropped");
	}
}

static void a_loop_counts_only_where_lids_use_it(void)
{
	struct routes *r = small_routes(2, 1);

	small_fabric(&fabric);
	*small_entry(r, 1, 1, 0) = 3; /* to terminal 0 in offset 1: 1 -> 2 -> 1 */
	*small_entry(r, 1, 2, 0) = 4;
	CHECK(!verdict(routes_hold(r), NULL), "without LMC offset 1 is not used");
	fabric.live.lids_per_port = 2;
	expect(verdict(r, NULL), "loops");
}

static void switches_come_and_go(void)
{
	small_fabric(&fabric);
	fabric.sw[2].guid = 0x999;
	expect(verdict(small_routes(1, 1), NULL), "0x0000000000000999 (switch) is not in");
	/* The third switch loses power; no route of the triangle needs it. */
	small_fabric(&fabric);
	fabric.live.switches = 2;
	fabric.peer[4] = fabric.peer[5 + 3] = NO_PEER;
	CHECK(!verdict(small_routes(1, 1), NULL), "must fit without the unused switch");
}

static void terminals_come_and_go(void)
{
	struct routes *r = small_routes(1, 1);
	struct reason why;
	struct fit fit;

	small_fabric(&fabric);
	fabric.live.terminals = 3;
	CHECK(!verdict(small_routes(1, 1), &fit) && fit.vanished == 1, "one has vanished");

	small_fabric(&fabric);
	fabric.end[4] = (struct live_terminal){.guid = 0x777, .leaf = 2, .leaf_port = 1, .lid_low = 30,
					       .lid_high = 30};
	fabric.live.terminals = 5;
	expect(verdict(routes_hold(r), &fit), "0x0000000000000777 is a host at switch 0x0000000000000102");
	ROUTES_FILL(uint8_t, r->senders)[2] = 1;
	fabric.end[0].leaf = 1; /* and another terminal has moved */
	fabric.end[0].leaf_port = 4;
	CHECK(fit_find(&fit, r, &fabric.live, &why), "%s", why.text);
	CHECK(fit.unknown == 2 && fit.vanished == 0, "%u unknown", fit.unknown);
	CHECK(fit_port(&fit, r, &fabric.live, 0, 2, 4) == 1, "the leaf delivers at its live port");
	CHECK(fit_port(&fit, r, &fabric.live, 0, 0, 4) == 4, "others send to the leaf");
	CHECK(fit_port(&fit, r, &fabric.live, 0, 1, 0) == 4, "the moved one is delivered");
	CHECK(fit_port(&fit, r, &fabric.live, 0, 0, 0) == 3, "and sent to its new leaf");
	fit_free(&fit);
	routes_drop(r);
}

/* Lanes hop by hop are proved for hosts at ports without a cable: packets that enter where one was have its lanes. */
static void an_unknown_host_where_a_cable_was(void)
{
	struct routes *r = small_copy(small_hop_routes(1), ROUTES_HOPS, 2);

	small_fabric(&fabric);
	fabric.peer[3] = fabric.peer[5 + 4] = NO_PEER; /* cut 0 - 1 */
	for (uint32_t s = 0; s < 2; s++) /* as a repair would have it */
		for (uint32_t d = 0; d < r->columns; d++)
			if (*small_entry(r, 0, s, d) == 3 + s)
				*small_entry(r, 0, s, d) = (uint8_t)(4 - s);
	CHECK(!verdict(routes_hold(r), NULL), "without it");
	fabric.end[4] = (struct live_terminal){.guid = 0x777, .leaf = 0, .leaf_port = 3, .lid_low = 30, .lid_high = 30};
	fabric.live.terminals = 5;
	expect(verdict(r, NULL), "0x0000000000000777 is a host at port 3");
}

static void lanes_must_be_there(void)
{
	small_fabric(&fabric);
	CHECK(!verdict(small_routes(1, 2), NULL), "8 lanes are enough for 2");
	fabric.live.data_lanes = 1;
	expect(verdict(small_routes(1, 2), NULL), "carries only 1");
	fabric.live.qos = false;
	expect(verdict(small_routes(1, 2), NULL), "qos TRUE");
	CHECK(!verdict(small_routes(1, 1), NULL), "one lane needs nothing");
	small_fabric(&fabric);
	fabric.live.sl2vl = false;
	expect(verdict(small_routes(1, 2), NULL), "no SL to VL tables");
	expect(verdict(small_hop_routes(1), NULL), "no SL to VL tables");
	CHECK(!verdict(small_routes(1, 1), NULL), "one lane needs none of them");
}

static void every_file_needs_the_cables_of_its_plan(void)
{
	struct routes *r;

	small_fabric(&fabric);
	CHECK(!verdict(small_hop_routes(2), NULL), "the fabric of the plan");
	fabric.peer_port[5 + 4] = 1; /* the far end was plugged into another port */
	expect(verdict(small_hop_routes(1), NULL), "port 4 of switch 0x0000000000000101 (switch) ends");
	expect(verdict(small_routes(1, 1), NULL), "elsewhere than in the fabric of the routes");
	expect(verdict(small_routes(1, 2), NULL), "elsewhere than in the fabric of the routes");
	r = small_hop_routes(1);
	ROUTES_FILL(uint32_t, r->far_ends)[5 + 4] = ROUTES_NO_SWITCH;
	CHECK(!verdict(r, NULL), "a port at which the plan knew no cable");
}

/* Two parallel cables are swapped: all nodes are still reachable, but the fabric is another one. */
static void swapped_cables_are_stale(void)
{
	struct reason why = {.text = ""};
	struct routes *r = small_routes(1, 1);
	struct fit fit;

	small_fabric(&fabric);
	fabric.peer[3] = 2, fabric.peer_port[3] = 4; /* 0's port 3 to 2's port 4, not to 1's */
	fabric.peer[4] = 1, fabric.peer_port[4] = 3;
	fabric.peer[5 + 4] = fabric.peer[10 + 3] = NO_PEER;
	fabric.peer[5 + 3] = 0, fabric.peer_port[5 + 3] = 4;
	fabric.peer[10 + 4] = 0, fabric.peer_port[10 + 4] = 3;
	CHECK(!fit_find(&fit, r, &fabric.live, &why) && !strcmp(why.code, "stale"), "%s", why.text);
	CHECK(strstr(why.text, "cable at port 3 of switch 0x0000000000000100"), "%s", why.text);
	fit_free(&fit);
	routes_drop(r);
}

static void the_fingerprint_sees_topology_alone(void)
{
	uint64_t before;

	small_fabric(&fabric);
	before = live_fingerprint(&fabric.live);
	fabric.end[0].lid_low = fabric.end[0].lid_high = 99;
	CHECK(live_fingerprint(&fabric.live) == before, "a LID is no topology");
	fabric.peer[3] = NO_PEER;
	CHECK(live_fingerprint(&fabric.live) != before, "a link is");
	small_fabric(&fabric);
	fabric.end[0].leaf_port = 2;
	CHECK(live_fingerprint(&fabric.live) != before, "and so is a terminal's place");
}

int main(void)
{
	the_fabric_of_the_plan_fits();
	dead_links_and_holes();
	no_packet_of_a_host_ends_in_a_drop();
	a_loop_counts_only_where_lids_use_it();
	switches_come_and_go();
	terminals_come_and_go();
	an_unknown_host_where_a_cable_was();
	lanes_must_be_there();
	every_file_needs_the_cables_of_its_plan();
	swapped_cables_are_stale();
	the_fingerprint_sees_topology_alone();
	return checked("fit");
}
