/* A walk over what has changed finds what a walk over everything finds; the same for hop counts. */
#include "../fit.h"
#include "../hops.h"

#include "check.h"
#include "small.h"

static struct small fabric;
static struct routes *routes;
static struct walked walked;
static struct hops hops;
static uint64_t seed = 1;

static uint32_t below(uint32_t limit)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(seed >> 33) % limit;
}

/* A copy in which some entries lead elsewhere, or nowhere. */
static void change_entries(void)
{
	struct routes *next = small_copy(routes_hold(routes), 0, 1);

	for (uint32_t n = below(4); n; n--) {
		const uint32_t s = below(SMALL_SWITCHES), d = below(next->columns), kind = below(8);
		const uint32_t at = d < SMALL_TERMINALS ? d / 2 : d - SMALL_TERMINALS;

		if (at != s) /* the last hop says where a terminal is */
			*small_entry(next, 0, s, d) = kind ? (uint8_t)(3 + kind % 2) : ROUTES_NO_ROUTE;
	}
	if (below(2)) { /* a repair has left entries out */
		next->amended = calloc(1, sizeof(*next->amended));
		next->amended->plan = routes_hold(routes);
		next->amended->dropping = below(2);
	}
	routes_drop(routes);
	routes = next;
}

static void cut(uint32_t s, uint32_t port)
{
	const uint32_t far = fabric.peer[5 * s + port];

	fabric.peer[5 * far + fabric.peer_port[5 * s + port]] = NO_PEER;
	fabric.peer[5 * s + port] = NO_PEER;
}

/* Cables, terminals and the third switch come and go. */
static void change_fabric(void)
{
	const uint32_t first = below(2);

	small_fabric(&fabric);
	for (uint32_t s = 0; s < SMALL_SWITCHES; s++)
		if (!below(4))
			cut(s, 3);
	fabric.live.terminals = below(SMALL_TERMINALS + 1);
	fabric.live.end = fabric.end + (first < fabric.live.terminals ? first : 0);
	fabric.live.terminals -= first < fabric.live.terminals ? first : 0;
	if (!below(3)) {
		for (uint32_t port = 3; port < 5; port++)
			if (fabric.peer[10 + port] != NO_PEER)
				cut(2, port);
		fabric.live.switches = 2;
	}
}

static void compare(unsigned step)
{
	struct reason all = {.text = ""}, changes = {.text = ""};
	struct fit fit;
	const bool good = fit_find(&fit, NULL, routes, &fabric.live, &all);

	fit_free(&fit);
	CHECK(fit_find(&fit, &walked, routes, &fabric.live, &changes) == good, "step %u: \"%s\" and \"%s\"", step,
	      all.text, changes.text);
	fit_free(&fit);
	CHECK(!good || walked.routes == routes, "step %u", step);
}

static void compare_hops(unsigned step)
{
	uint8_t count[SMALL_SWITCHES];
	uint32_t queue[SMALL_SWITCHES];

	CHECK(hops_update(&hops, &fabric.live), "step %u", step);
	for (uint32_t t = 0; t < fabric.live.switches; t++) {
		hops_to(&fabric.live, t, count, queue);
		CHECK(!memcmp(count, hops_of(&hops, t), fabric.live.switches), "step %u, target %u", step, t);
	}
}

int main(void)
{
	unsigned fits = 0;

	routes = small_routes(1, 1);
	small_fabric(&fabric);
	for (unsigned step = 0; step < 20000; step++) {
		if (!below(8)) {
			routes_drop(routes);
			routes = small_routes(1, 1);
		} else if (below(2)) {
			change_entries();
		}
		if (below(2))
			change_fabric();
		compare(step);
		compare_hops(step);
		fits += walked.routes == routes;
	}
	CHECK(fits > 2000 && fits < 19000, "%u of the steps fit", fits);
	routes_drop(routes);
	walked_free(&walked);
	hops_free(&hops);
	return checked("walked");
}
