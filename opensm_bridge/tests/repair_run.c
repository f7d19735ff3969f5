/*
 * repair_run FILE FOLDER [FABRIC]: repairs the routes of FILE for fabrics that lack something of the fabric of FILE or, if
 * it is given, of that of the file FABRIC, which may have more switches, for the tests. It reads commands from standard input, one a line, and answers the last one of each fabric with one line:
 *   cable ROW PORT, switch ROW, host COLUMN   what the next fabric lacks
 *   replace ROW, move ROW PORT ROW PORT       a switch has another GUID; two cables have changed places at their far ends
 *   go                                        repairs the routes in force, and writes them to FOLDER/N.sar
 *   load                                      the routes of FILE are in force again
 * "N changed ENTRIES later ENTRIES dropping 0|1 ms MILLISECONDS" or "N refused REASON".
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../certificate.h"
#include "../own.h"
#include "../routes_image.h"

struct lacks {
	uint8_t *dead_port, *dead_switch, *dead_host, *replaced; /* by row and port, row, column, row */
	uint32_t *far;
};

static double milliseconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now); /* the machine may do other work */
	return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static void *room(size_t count, size_t size)
{
	void *made = calloc(count + 1, size);

	if (!made)
		abort();
	return made;
}

static int by_guid(const void *a, const void *b)
{
	const struct live_switch *x = a, *y = b;

	return x->guid < y->guid ? -1 : x->guid > y->guid;
}

static uint64_t guid_of(const struct routes *r, const struct lacks *l, uint32_t row)
{
	return r->switch_guid[row] ^ (l->replaced[row] ? (uint64_t)1 << 62 : 0);
}

/* The live fabric: that of the file without what it lacks. */
static void make_live(struct live *live, const struct routes *r, const struct lacks *l)
{
	uint32_t *index = room(r->switches, sizeof(*index)), *row = room(r->switches, sizeof(*row));

	*live = (struct live){.sw = room(r->switches, sizeof(*live->sw)),
			      .end = room(r->terminals, sizeof(*live->end)),
			      .peer = room((size_t)r->switches * r->wide, sizeof(*live->peer)),
			      .peer_port = room((size_t)r->switches * r->wide, 1),
			      .lids_per_port = 1, .data_lanes = 15, .sl2vl = true, .qos = true};
	while (live->lids_per_port < r->offsets)
		live->lids_per_port *= 2;
	for (uint32_t s = 0; s < r->switches; s++)
		if (!l->dead_switch[s])
			live->sw[live->switches++] = (struct live_switch){
				.guid = guid_of(r, l, s), .name = "switch", .ports = r->switch_ports[s],
				.first_port = s * r->wide, .lid_low = (uint16_t)(s + 1),
				.lid_high = (uint16_t)(s + 1)};
	qsort(live->sw, live->switches, sizeof(*live->sw), by_guid);
	for (uint32_t i = 0; i < live->switches; i++) {
		row[i] = live->sw[i].first_port / r->wide;
		index[row[i]] = i;
	}
	memset(live->peer, 0xff, (size_t)r->switches * r->wide * sizeof(*live->peer));
	for (uint32_t i = 0; i < live->switches; i++)
		for (unsigned p = 1; p <= r->switch_ports[row[i]]; p++) {
			const size_t at = (size_t)row[i] * r->wide + p;
			const uint32_t far = l->far[at];

			if (far == ROUTES_NO_SWITCH || l->dead_switch[far >> 8] || l->dead_port[at] ||
			    l->dead_port[(size_t)(far >> 8) * r->wide + (far & 255)])
				continue;
			live->peer[at] = index[far >> 8];
			live->peer_port[at] = far & 255;
		}
	for (uint32_t t = 0; t < r->terminals; t++)
		if (!l->dead_host[t] && !l->dead_switch[r->terminal_leaf[t]])
			live->end[live->terminals++] = (struct live_terminal){
				.guid = r->terminal_guid[t], .leaf = index[r->terminal_leaf[t]],
				.leaf_port = routes_row(r, r->forwarding, 0, r->terminal_leaf[t])[t],
				.lid_low = (uint16_t)(10000 + t), .lid_high = (uint16_t)(10000 + t)};
	free(index);
	free(row);
}

static void whole(struct lacks *l, const struct routes *r)
{
	const size_t ports = (size_t)r->switches * r->wide;

	memset(l->dead_port, 0, ports);
	memset(l->dead_switch, 0, r->switches);
	memset(l->replaced, 0, r->switches);
	memset(l->dead_host, 0, r->terminals);
	memcpy(l->far, r->far_ends, ports * sizeof(*l->far));
}

/* Repairs `now` and answers; returns the routes that are in force then. */
static struct routes *go(struct routes *now, const struct routes *fabric, const struct lacks *l,
			 const char *folder, unsigned number)
{
	struct reason why = {.text = ""}, unrepaired;
	struct live live;
	struct own_task task = {.live = &live, .assumed = true, .ours = true, .lids = 64};
	struct tables tables;
	char path[4096];
	double begun;

	make_live(&live, fabric, l);
	begun = milliseconds();
	if (own_choose(&tables, &task, now, &unrepaired, &why) && !*unrepaired.text) {
		const struct amendment *a = tables.routes->amended;

		printf("%u changed %u later %u dropping %d ms %.3f\n", number, tables.routes == now ? 0 : a->entries,
		       a ? a->later : 0, a && a->dropping, milliseconds() - begun);
		snprintf(path, sizeof(path), "%s/%u.sar", folder, number);
		if (!routes_write(tables.routes, path, &why))
			abort();
		routes_drop(now);
		now = routes_hold(tables.routes);
	} else {
		printf("%u refused %s\n", number, *unrepaired.text ? unrepaired.text : why.text);
	}
	own_free(&tables);
	live_free(&live);
	return now;
}

int main(int count, char *arguments[])
{
	struct reason why = {.text = ""};
	struct routes *plan = count == 3 || count == 4 ? routes_read(arguments[1], &why) : NULL, *now;
	struct routes *fabric = count == 4 ? routes_read(arguments[3], &why) : routes_hold(plan);
	struct lacks l;
	unsigned number = 0;
	double begun;
	char line[256];

	if (!plan || !fabric || !plan->numbers)
		return fprintf(stderr, "%s\n", *why.text ? why.text : "no numbers"), 2;
	begun = milliseconds();
	if (!certificate_holds(plan, &why))
		return printf("broken %s\n", why.text), 1;
	printf("holds ms %.3f\n", milliseconds() - begun);
	fflush(stdout);
	l = (struct lacks){.dead_port = room((size_t)fabric->switches * fabric->wide, 1),
			   .dead_switch = room(fabric->switches, 1), .dead_host = room(fabric->terminals, 1),
			   .replaced = room(fabric->switches, 1),
			   .far = room((size_t)fabric->switches * fabric->wide, sizeof(*l.far))};
	whole(&l, fabric);
	now = routes_hold(plan);
	while (fgets(line, sizeof(line), stdin)) {
		unsigned s, p, v, q;

		if (sscanf(line, "cable %u %u", &s, &p) == 2 && s < fabric->switches && p < fabric->wide) {
			l.dead_port[s * fabric->wide + p] = 1;
		} else if (sscanf(line, "switch %u", &s) == 1 && s < fabric->switches) {
			l.dead_switch[s] = 1;
		} else if (sscanf(line, "host %u", &s) == 1 && s < fabric->terminals) {
			l.dead_host[s] = 1;
		} else if (sscanf(line, "replace %u", &s) == 1 && s < fabric->switches) {
			l.replaced[s] = 1;
		} else if (sscanf(line, "move %u %u %u %u", &s, &p, &v, &q) == 4 && s < fabric->switches &&
			   p < fabric->wide && v < fabric->switches && q < fabric->wide) {
			const size_t at[2] = {(size_t)s * fabric->wide + p, (size_t)v * fabric->wide + q};
			const uint32_t far[2] = {l.far[at[0]], l.far[at[1]]};

			for (int i = 0; i < 2; i++)
				l.far[at[i]] = far[!i];
			l.far[(far[0] >> 8) * fabric->wide + (far[0] & 255)] = v << 8 | q;
			l.far[(far[1] >> 8) * fabric->wide + (far[1] & 255)] = s << 8 | p;
		} else if (!strcmp(line, "go\n")) {
			now = go(now, fabric, &l, arguments[2], number++);
			whole(&l, fabric);
		} else if (!strcmp(line, "load\n")) {
			routes_drop(now);
			now = routes_hold(plan);
		} else {
			return fprintf(stderr, "unknown command: %s", line), 2;
		}
		fflush(stdout);
	}
	routes_drop(now);
	routes_drop(plan);
	routes_drop(fabric);
	free(l.dead_port);
	free(l.dead_switch);
	free(l.dead_host);
	free(l.replaced);
	free(l.far);
	return 0;
}
