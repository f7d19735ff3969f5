/* The last difference of each port; see port_counters.h. */
#include "port_counters.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "sealed_file.h"

#pragma GCC diagnostic ignored "-Wanalyzer-malloc-leak" /* GCC does not know that a tree owns what is in it */
#define OVERFLOW (UINT32_MAX - UINT32_MAX / 4) /* PerfMgr clears counters of 32 bits that are past it */

static int by_place(const void *a, const void *b)
{
	const struct counted_port *x = a, *y = b;

	if (x->guid != y->guid)
		return x->guid < y->guid ? -1 : 1;
	return x->port < y->port ? -1 : x->port > y->port;
}

static struct counted_port *port_of(struct port_counters *c, uint64_t guid, uint8_t port)
{
	const struct counted_port key = {.guid = guid, .port = port, .sweep = c->sweep};
	struct counted_port *const *found = guid ? tfind(&key, &c->ports, by_place) : NULL, *new;

	if (found || !guid)
		return found ? *found : NULL;
	new = c->used < COUNTERS_MOST ? malloc(sizeof(*new)) : NULL;
	if (new)
		*new = key;
	if (!new || !tsearch(new, &c->ports, by_place)) {
		free(new);
		c->dropped++;
		return NULL;
	}
	c->used++;
	return new;
}

/*
 * The ms that a difference is of; 0 if it is no difference. PerfMgr reports the whole counter as a difference of no time when it
 * reads a port for the first time, and when somebody else has cleared the counter. Its own clock counts whole seconds, so ours
 * is used unless the two disagree: then PerfMgr cleared the counter in between, and knows when.
 */
static uint32_t window_of(const struct port_counters *c, uint64_t before, uint64_t now, int64_t seconds)
{
	const uint64_t ours = now - before;
	uint64_t theirs;

	if (!before || seconds < 1 || (uint64_t)seconds < c->sweep_seconds / 2)
		return 0;
	theirs = 1000 * (uint64_t)seconds;
	if (ours > theirs + 1500 || theirs > ours + 1500)
		return theirs < UINT32_MAX ? (uint32_t)theirs : UINT32_MAX;
	return ours < UINT32_MAX ? (uint32_t)ours : UINT32_MAX;
}

/* PerfMgr reports no sweep: one begins when a port that it has been read in is read again. A late answer does not count. */
static void number_sweep(struct port_counters *c, const struct counted_port *port, uint64_t now)
{
	if (!c->sweep || (port->read_at && port->sweep == c->sweep &&
			  now - port->read_at >= 500 * (uint64_t)c->sweep_seconds))
		c->sweep++;
}

/* Whether one of the two counters, if they are of 32 bits, stands at its maximum: it stays there until it is cleared. */
static bool is_stuck(struct counted_port *port, const uint64_t words[2])
{
	bool stuck = false, cleared = false;

	for (unsigned i = 0; i < 2; i++) {
		const uint64_t total = port->total[i] + words[i];

		if (words[i] > UINT32_MAX || total > UINT32_MAX)
			port->flags |= COUNTED_WIDE;
		stuck |= total == UINT32_MAX;
		cleared |= total >= OVERFLOW;
		port->total[i] = (uint32_t)total;
	}
	if (cleared)
		port->total[0] = port->total[1] = 0;
	return stuck && !(port->flags & COUNTED_WIDE);
}

bool counters_add_data(struct port_counters *c, const struct counted_data *data, uint64_t now)
{
	struct counted_port *port = port_of(c, data->guid, data->port);

	if (!port)
		return false;
	number_sweep(c, port, now);
	port->window = window_of(c, port->read_at, now, data->seconds);
	if (!port->window)
		port->total[0] = port->total[1] = 0;
	port->flags &= (uint8_t)~(COUNTED_DATA | COUNTED_STUCK);
	if (port->window)
		port->flags |= COUNTED_DATA;
	if (is_stuck(port, (const uint64_t[]){data->sent, data->received}) && port->window)
		port->flags |= COUNTED_STUCK;
	port->sent = data->sent;
	port->received = data->received;
	port->sent_packets = data->sent_packets;
	port->received_packets = data->received_packets;
	port->read_at = now;
	port->sweep = c->sweep;
	return true;
}

bool counters_add_waits(struct port_counters *c, uint64_t guid, uint8_t number, uint64_t waits, int64_t seconds,
			uint64_t now)
{
	struct counted_port *port = port_of(c, guid, number);

	if (!port)
		return false;
	port->wait_window = window_of(c, port->waits_at, now, seconds);
	port->flags &= (uint8_t)~COUNTED_WAITS;
	if (port->wait_window)
		port->flags |= COUNTED_WAITS;
	port->waits = waits;
	port->waits_at = now;
	return true;
}

void counters_free(struct port_counters *c)
{
	tdestroy(c->ports, free);
	memset(c, 0, sizeof(*c));
}

/* The ports of a file, in the order of the tree. */
struct listing {
	const struct port_counters *c;
	uint64_t now;
	uint8_t *image; /* NULL: they are only counted */
	size_t ports, count;
};

static void list(const void *node, VISIT visit, void *context)
{
	const struct counted_port *from = *(const struct counted_port *const *)node;
	struct listing *l = context;
	const size_t ports = l->ports, p = l->count;
	const uint64_t age = l->now - from->read_at;
	uint64_t *wide;
	uint32_t *narrow;
	uint8_t *port;

	if ((visit != postorder && visit != leaf) || !from->read_at || l->c->sweep - from->sweep > COUNTERS_FORGET)
		return;
	l->count++;
	if (!l->image)
		return;
	wide = (void *)(l->image + COUNTERS_HEADER_SIZE);
	narrow = (void *)(wide + 6 * ports);
	port = (void *)(narrow + 4 * ports);
	wide[p] = from->guid;
	wide[ports + p] = from->sent;
	wide[2 * ports + p] = from->received;
	wide[3 * ports + p] = from->sent_packets;
	wide[4 * ports + p] = from->received_packets;
	wide[5 * ports + p] = from->waits;
	narrow[p] = age < UINT32_MAX ? (uint32_t)age : UINT32_MAX;
	narrow[ports + p] = from->window;
	narrow[2 * ports + p] = from->wait_window;
	narrow[3 * ports + p] = from->sweep;
	port[p] = from->port;
	port[ports + p] = from->flags & (COUNTED_DATA | COUNTED_WAITS | COUNTED_STUCK);
}

uint8_t *counters_image(const struct port_counters *c, uint64_t now, uint64_t unix_now, size_t *size)
{
	struct listing l = {.c = c, .now = now};

	twalk_r(c->ports, list, &l);
	*size = COUNTERS_HEADER_SIZE + COUNTERS_PORT_SIZE * l.count;
	l = (struct listing){.c = c, .now = now, .image = calloc(1, *size), .ports = l.count};
	if (!l.image)
		return NULL;
	twalk_r(c->ports, list, &l);
	seal_file(l.image, *size, "SARCOUNT", (struct sealed_header){
		.count = {(uint32_t)l.ports, c->sweep, c->sweep_seconds, c->dropped}, .made_at = unix_now});
	return l.image;
}
