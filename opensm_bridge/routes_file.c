/*
 * Reads a routes file. Nothing of a file is used before all of it was checked, because half a plan in a fabric may loop or
 * deadlock. The file is copied, not mapped: if somebody truncated a mapped file, SIGBUS would end OpenSM.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "routes_image.h"

/* More than any fabric of today needs (170 MB for 11,664 hosts, two lanes and four offsets). */
#define MAX_FILE_SIZE ((int64_t)4 << 30)
#define MAX_NODES 65535

static bool engine_name_is_good(const char *name)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._+-",
			  nothing[ROUTES_ENGINE_SIZE];
	const size_t length = strnlen(name, ROUTES_ENGINE_SIZE);

	return length && length < ROUTES_ENGINE_SIZE && strspn(name, letters) == length &&
	       !memcmp(name + length, nothing, ROUTES_ENGINE_SIZE - length);
}

static bool check_header(struct routes *r, struct reason *why)
{
	const struct routes_header *h = (const void *)r->image;
	struct routes_layout l;

	if (r->size < sizeof(*h))
		REFUSE("only %zu bytes, shorter than the header", r->size);
	if (memcmp(h->magic, ROUTES_MAGIC, sizeof(h->magic)))
		REFUSE("not a routes file (bad magic)");
	if (h->header_crc != routes_header_crc(r))
		REFUSE("bad header checksum");
	if (h->version != ROUTES_VERSION)
		REFUSE("format version %u, this plugin reads %u: write it again with the sar-agent of "
		       "this release", h->version, ROUTES_VERSION);
	if (h->size != sizeof(*h))
		REFUSE("header size %u, not %zu", h->size, sizeof(*h));
	if (h->file_size != r->size)
		REFUSE("%zu bytes long, the header says %ju", r->size, (uintmax_t)h->file_size);
	if (!h->generation)
		REFUSE("generation 0");
	if (!h->switches || h->switches > MAX_NODES || !h->terminals || h->terminals > MAX_NODES)
		REFUSE("%u switches and %u terminals", h->switches, h->terminals);
	if (h->flags & ~(ROUTES_HOPS | ROUTES_HAD | ROUTES_NUMBERS))
		REFUSE("unknown flags %#x", h->flags);
	if (!h->offsets || h->offsets > 128 || h->lanes < 1 + (h->flags & ROUTES_HOPS) || h->lanes > 15)
		REFUSE("%u LID offsets and %u virtual lanes", h->offsets, h->lanes);
	if (!engine_name_is_good(h->engine))
		REFUSE("bad engine name");
	r->generation = h->generation;
	r->made_at = h->made_at;
	r->switches = h->switches;
	r->terminals = h->terminals;
	r->columns = h->switches + h->terminals;
	r->offsets = h->offsets;
	r->lanes = h->lanes;
	r->flags = h->flags;
	memcpy(r->engine, h->engine, sizeof(r->engine));
	routes_lay_out(r, &l);
	if (h->sections != l.sections)
		REFUSE("%u sections for %u virtual lanes", h->sections, r->lanes);
	if (h->payload_crc != routes_payload_crc(r))
		REFUSE("bad payload checksum");
	return true;
}

static unsigned highest(const uint8_t *values, size_t count)
{
	unsigned most = 0;

	for (size_t i = 0; i < count; i++)
		most = values[i] > most ? values[i] : most;
	return most;
}

/* Every byte up to the end of the last section but those in sections has exactly one valid value, so it is compared rather than
 * interpreted. */
static bool find_sections(struct routes *r, struct reason *why)
{
	struct routes_layout l;
	uint64_t end;

	routes_lay_out(r, &l); /* as far as section 4, it does not depend on `wide` */
	if (l.section[3].at + l.section[3].length > r->size)
		REFUSE("the sections run past the end");
	r->wide = 1 + highest(r->image + l.section[3].at, r->switches);
	routes_lay_out(r, &l);
	if (l.size != r->size)
		REFUSE("%zu bytes long, its sections need %ju", r->size, (uintmax_t)l.size);
	end = ROUTES_HEADER_SIZE + l.sections * sizeof(*l.section);
	if (memcmp(r->image + ROUTES_HEADER_SIZE, l.section, end - ROUTES_HEADER_SIZE))
		REFUSE("a section is missing, misplaced or of a wrong length");
	for (unsigned i = 0; i < l.sections; i++) {
		for (; end < l.section[i].at; end++)
			if (r->image[end])
				REFUSE("dirty padding before section %u", l.section[i].id);
		end += l.section[i].length;
	}
	routes_set_arrays(r, &l);
	return true;
}

static bool ascending(const uint64_t *guids, uint32_t count)
{
	for (uint32_t i = 1; i < count; i++)
		if (guids[i] <= guids[i - 1])
			return false;
	return true;
}

static bool check_nodes(const struct routes *r, struct reason *why)
{
	if (!ascending(r->switch_guid, r->switches))
		REFUSE("switch GUIDs are not strictly ascending");
	if (!ascending(r->terminal_guid, r->terminals))
		REFUSE("terminal GUIDs are not strictly ascending");
	for (uint32_t t = 0; t < r->terminals; t++)
		if (r->terminal_leaf[t] >= r->switches)
			REFUSE("the leaf switch of terminal %u is out of range", t);
	for (uint32_t s = 0; s < r->switches; s++)
		if (!r->switch_ports[s] || r->switch_ports[s] >= ROUTES_UNKNOWN)
			REFUSE("the port count of switch %u is out of range", s);
	return true;
}

static bool check_cables(const struct routes *r, struct reason *why)
{
	const size_t ends = (size_t)r->switches * r->wide;

	if (highest(r->senders, r->switches) > 1)
		REFUSE("a switch's senders are neither 0 nor 1");
	for (size_t i = 0; i < ends; i++) {
		const uint32_t far = r->far_ends[i] >> 8, port = r->far_ends[i] & 255;

		if (r->far_ends[i] == ROUTES_NO_SWITCH)
			continue;
		if (far >= r->switches || !port || port > r->switch_ports[far])
			REFUSE("the far end of port %zu of switch %zu is out of range", i % r->wide, i / r->wide);
		if (r->far_ends[(size_t)far * r->wide + port] != (i / r->wide << 8 | i % r->wide))
			REFUSE("the cable at port %zu of switch %zu ends at port %u of switch %u, but not the other way "
			       "round: write the file again", i % r->wide, i / r->wide, port, far);
	}
	return true;
}

/* `special`: the lowest value that is not a port number and still allowed. */
static bool check_ports(const struct routes *r, const uint8_t *table, unsigned special, struct reason *why)
{
	for (unsigned o = 0; o < r->offsets; o++)
		for (uint32_t s = 0; s < r->switches; s++) {
			const uint8_t *row = routes_row(r, table, o, s);

			for (uint32_t d = 0; d < r->columns; d++) {
				if ((row[d] == 0) != (d == r->terminals + s))
					REFUSE("offset %u, switch %u, column %u: port 0 must be, "
					       "and only be, a switch's own column", o, s, d);
				if (row[d] > r->switch_ports[s] && row[d] < special)
					REFUSE("offset %u, switch %u, column %u: port %u, but the "
					       "highest is %u", o, s, d, row[d], r->switch_ports[s]);
			}
		}
	return true;
}

static bool check_lanes(const struct routes *r, struct reason *why)
{
	const size_t hops = (size_t)r->switches * r->wide * r->wide;

	if (r->hop_lanes && highest(r->hop_lanes, hops) >= r->lanes)
		REFUSE("an unused lane hop by hop");
	if (!r->service_levels)
		return true;
	if (highest(r->service_levels, (size_t)r->offsets * r->switches * r->columns) > 15)
		REFUSE("a service level above 15");
	for (unsigned sl = 0; sl < 16; sl++)
		if (r->sl_to_vl[sl] >= r->lanes && r->sl_to_vl[sl] != ROUTES_DROPPED)
			REFUSE("an SL maps to an unused lane");
	if (highest(r->fallback_sl, r->offsets) > 15)
		REFUSE("a fallback SL above 15");
	return true;
}

static bool check_loads(const struct routes *r, struct reason *why)
{
	for (size_t i = 0; r->loads && i < (size_t)r->switches * r->wide; i++)
		if (r->loads[i] > ROUTES_MOST_LOAD)
			REFUSE("a load above %u", ROUTES_MOST_LOAD);
	return true;
}

static bool check(struct routes *r, struct reason *why)
{
	return check_header(r, why) && find_sections(r, why) && check_nodes(r, why) &&
	       check_ports(r, r->forwarding, ROUTES_NO_ROUTE, why) && check_cables(r, why) && check_lanes(r, why) && check_loads(r, why) &&
	       (!r->had || check_ports(r, r->had, ROUTES_UNKNOWN, why));
}

struct routes *routes_from_image(uint8_t *image, size_t size, struct reason *why)
{
	struct routes *r = calloc(1, sizeof(*r));

	if (!r) {
		REASON(why, "no memory");
		free(image);
		return NULL;
	}
	r->holders = 1;
	r->image = image;
	r->size = size;
	if (check(r, why))
		return r;
	routes_drop(r);
	return NULL;
}

/* Reads from an open file; NULL and `why` if that fails or the file is invalid. */
static struct routes *read_open(FILE *file, const char *path, struct reason *why)
{
	struct reason inner = {.text = ""};
	struct routes *r;
	struct stat info;
	uint8_t *image;
	size_t size;

	if (fstat(fileno(file), &info) || !S_ISREG(info.st_mode) || info.st_size > MAX_FILE_SIZE)
		return REASON(why, "%.300s is not a routes file (not regular, or too large)", path), NULL;
	size = (size_t)info.st_size;
	image = malloc(size ? size : 1);
	if (!image || fread(image, 1, size, file) != size) {
		REASON(why, "cannot read %.300s: %s", path, image ? "read error" : "no memory");
		free(image);
		return NULL;
	}
	r = routes_from_image(image, size, &inner);
	if (!r)
		REASON(why, "%.300s is invalid: %.180s", path, inner.text);
	return r;
}

struct routes *routes_read(const char *path, struct reason *why)
{
	/* O_NONBLOCK, so that a FIFO of that name cannot block OpenSM. O_NOFOLLOW, since root opens
	 * the file in a folder of another user: a link could lead to a device. */
	const int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
	FILE *file = descriptor < 0 ? NULL : fdopen(descriptor, "r");
	struct routes *r = NULL;

	if (file) {
		r = read_open(file, path, why);
		fclose(file);
		return r;
	}
	REASON(why, "cannot read %.300s: %s", path,
	       errno == ELOOP ? "it is a link; put the file itself there" : strerror(errno));
	if (descriptor >= 0)
		close(descriptor);
	return NULL;
}

struct routes *routes_hold(struct routes *r)
{
	if (r)
		r->holders++;
	return r;
}

void routes_drop(struct routes *r)
{
	if (!r || --r->holders)
		return;
	if (r->amended) {
		routes_drop(r->amended->plan);
		free(r->amended);
	}
	free(r->image);
	free(r);
}

void routes_senders(const struct routes *r, uint8_t *sends)
{
	memcpy(sends, r->senders, r->switches);
	for (uint32_t t = 0; t < r->terminals; t++)
		sends[r->terminal_leaf[t]] = 1;
}
