/* The last difference of each port, in a hash table with open addressing; see port_counters.h. */
#include "port_counters.h"

#include <stdlib.h>
#include <string.h>

#include "crc32.h"
#include "hash.h"
#include "write_file.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the arrays are written in the byte order of memory");

#define LEAST_ROOM 1024u
#define OVERFLOW (UINT32_MAX - UINT32_MAX / 4) /* PerfMgr clears counters of 32 bits that are past it */

/* The port's slot, or the empty one where it belongs. There always is an empty slot. */
static struct counted_port *find(const struct port_counters *c, uint64_t guid, uint8_t port)
{
	uint32_t at = (uint32_t)(hash_mix(hash_mix(0, guid), port) >> 32) & (c->room - 1);

	while (c->slot[at].guid && (c->slot[at].guid != guid || c->slot[at].port != port))
		at = (at + 1) & (c->room - 1);
	return &c->slot[at];
}

static bool recent(const struct port_counters *c, const struct counted_port *port)
{
	return port->guid && c->sweep - port->sweep <= COUNTERS_FORGET;
}

/* Forgets ports that are no longer read, and doubles the room if the others need more. */
static bool make_room(struct port_counters *c)
{
	struct port_counters next = *c;
	uint32_t kept = 0;

	for (uint32_t i = 0; i < c->room; i++)
		kept += recent(c, &c->slot[i]);
	if (!c->room || kept >= c->room / 2)
		next.room = c->room ? 2 * c->room : LEAST_ROOM;
	if (next.room > COUNTERS_MOST) {
		if (kept >= COUNTERS_MOST / 4 * 3) {
			c->full = c->sweep + 1;
			return false;
		}
		next.room = COUNTERS_MOST;
	}
	next.used = kept;
	next.slot = calloc(next.room, sizeof(*next.slot));
	if (!next.slot)
		return false;
	for (uint32_t i = 0; i < c->room; i++)
		if (recent(c, &c->slot[i]))
			*find(&next, c->slot[i].guid, c->slot[i].port) = c->slot[i];
	free(c->slot);
	*c = next;
	return true;
}

static struct counted_port *port_of(struct port_counters *c, uint64_t guid, uint8_t port)
{
	struct counted_port *found;

	if (!guid)
		return NULL;
	if (c->room) {
		found = find(c, guid, port);
		if (found->guid)
			return found;
	}
	if (c->used >= c->room / 4 * 3 && (c->full == c->sweep + 1 || !make_room(c))) {
		c->dropped++;
		return NULL;
	}
	found = find(c, guid, port);
	*found = (struct counted_port){.guid = guid, .port = port, .sweep = c->sweep};
	c->used++;
	return found;
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
	free(c->slot);
	memset(c, 0, sizeof(*c));
}

bool counters_copy(struct port_counters *copy, const struct port_counters *c)
{
	*copy = *c;
	copy->used = 0;
	copy->slot = calloc(c->used + 1, sizeof(*copy->slot));
	if (!copy->slot)
		return false;
	for (uint32_t i = 0; i < c->room; i++)
		if (recent(c, &c->slot[i]) && c->slot[i].read_at && copy->used < c->used)
			copy->slot[copy->used++] = c->slot[i];
	copy->room = 0; /* no hash table */
	return true;
}

static int by_place(const void *a, const void *b)
{
	const struct counted_port *x = a, *y = b;

	if (x->guid != y->guid)
		return x->guid < y->guid ? -1 : 1;
	return x->port < y->port ? -1 : x->port > y->port;
}

static void put_header(uint8_t *image, const struct port_counters *c, size_t size, uint64_t unix_now)
{
	memcpy(image, "SARCOUNT", 8);
	put_bytes(image, 8, 1, 4);
	put_bytes(image, 12, COUNTERS_HEADER_SIZE, 4);
	put_bytes(image, 16, size, 8);
	put_bytes(image, 24, c->used, 4);
	put_bytes(image, 28, c->sweep, 4);
	put_bytes(image, 32, c->sweep_seconds, 4);
	put_bytes(image, 36, c->dropped, 4);
	put_bytes(image, 40, unix_now, 8);
	put_bytes(image, 56, sar_crc32(0, image + COUNTERS_HEADER_SIZE, size - COUNTERS_HEADER_SIZE), 4);
	put_bytes(image, 60, sar_crc32(0, image, 60), 4);
}

uint8_t *counters_image(struct port_counters *c, uint64_t now, uint64_t unix_now, size_t *size)
{
	const size_t ports = c->used;
	uint8_t *image, *port, *flags;
	uint64_t *wide;
	uint32_t *narrow;

	*size = COUNTERS_HEADER_SIZE + 66 * ports;
	image = calloc(1, *size);
	if (!image)
		return NULL;
	wide = (void *)(image + COUNTERS_HEADER_SIZE);
	narrow = (void *)(wide + 6 * ports);
	port = (void *)(narrow + 4 * ports);
	flags = port + ports;
	qsort(c->slot, ports, sizeof(*c->slot), by_place);
	for (size_t p = 0; p < ports; p++) {
		const struct counted_port *from = &c->slot[p];
		const uint64_t age = now - from->read_at;

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
		flags[p] = from->flags & (COUNTED_DATA | COUNTED_WAITS | COUNTED_STUCK);
	}
	put_header(image, c, *size, unix_now);
	return image;
}
