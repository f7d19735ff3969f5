/*
 * Reads a routes file. Nothing of a file is used before all of it was checked, because half a plan in a fabric may loop or
 * deadlock. The file is copied, not mapped: if somebody truncated a mapped file, SIGBUS would end OpenSM.
 *
 * Little-endian machines only, because the arrays are used in place.
 */
#include "routes_file.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "crc32.h"
#include "write_file.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "routes files are used in place and are little-endian"
#endif

/* More than any fabric of today needs (170 MB for 11,664 hosts, two lanes and four offsets). */
#define MAX_FILE_SIZE ((uint64_t)4 << 30)
#define MAX_NODES 65535

static uint32_t u32_at(const uint8_t *image, size_t at)
{
	uint32_t value;
	memcpy(&value, image + at, sizeof(value));
	return value;
}

static uint64_t u64_at(const uint8_t *image, size_t at)
{
	uint64_t value;
	memcpy(&value, image + at, sizeof(value));
	return value;
}

static bool engine_name_is_good(const uint8_t *name)
{
	size_t length = strnlen((const char *)name, ROUTES_ENGINE_SIZE);

	if (!length || length == ROUTES_ENGINE_SIZE)
		return false;
	for (size_t i = 0; i < ROUTES_ENGINE_SIZE; i++)
		if (i < length ? !isalnum(name[i]) && !strchr("._+-", name[i]) : name[i] != 0)
			return false;
	return true;
}

static bool has(const struct routes *r, unsigned id)
{
	const bool by_hop = r->flags & ROUTES_HOPS;

	if (id >= 6 && id <= 8)
		return r->lanes > 1 && !by_hop;
	if (id == 9)
		return by_hop;
	if (id == 12)
		return r->flags & ROUTES_HAD;
	return id <= 11 || r->flags & ROUTES_NUMBERS;
}

void routes_lay_out(const struct routes *r, struct layout *l)
{
	const uint64_t s = r->switches, t = r->terminals, wide = r->wide, table = r->offsets * s * (s + t);
	const uint64_t length[ROUTES_LAST_ID + 1] = {
		0, 8 * s, 8 * t, 4 * t, s, table, table, 16, r->offsets, s * wide * wide, 4 * s * wide, s, table,
		4 * r->lanes * s * wide, 4 * s * wide};

	*l = (struct layout){.sections = 0};
	for (unsigned id = 1; id <= ROUTES_LAST_ID; id++)
		l->sections += has(r, id);
	l->size = ROUTES_HEADER_SIZE + l->sections * ROUTES_SECTION_SIZE;
	for (unsigned id = 1; id <= ROUTES_LAST_ID; id++)
		if (has(r, id)) {
			l->at[id] = (l->size + 7) & ~(uint64_t)7;
			l->length[id] = length[id];
			l->size = l->at[id] + length[id];
		}
}

void routes_put_table(const struct layout *l, uint8_t *table)
{
	for (unsigned id = 1; id <= ROUTES_LAST_ID; id++)
		if (l->at[id]) {
			put_bytes(table, 0, id, 8);
			put_bytes(table, 8, l->at[id], 8);
			put_bytes(table, 16, l->length[id], 8);
			table += ROUTES_SECTION_SIZE;
		}
}

/* Sections are aligned to 8 bytes, and so is an image from malloc(). */
void routes_set_arrays(struct routes *r, const struct layout *l)
{
	void *section[ROUTES_LAST_ID + 1];

	for (unsigned id = 0; id <= ROUTES_LAST_ID; id++)
		section[id] = l->at[id] ? r->image + l->at[id] : NULL;
	r->switch_guid = section[1];
	r->terminal_guid = section[2];
	r->terminal_leaf = section[3];
	r->switch_ports = section[4];
	r->forwarding = section[5];
	r->service_levels = section[6];
	r->sl_to_vl = section[7];
	r->fallback_sl = section[8];
	r->hop_lanes = section[9];
	r->far_ends = section[10];
	r->senders = section[11];
	r->had = section[12];
	r->numbers = section[13];
	r->loads = section[14];
}

static bool check_header(struct routes *r, struct reason *why)
{
	const uint8_t *h = r->image;
	struct layout l;

	if (r->size < ROUTES_HEADER_SIZE)
		REFUSE("only %zu bytes, shorter than the header", r->size);
	if (memcmp(h, "SARROUTE", 8))
		REFUSE("not a routes file (bad magic)");
	if (sar_crc32(0, h, 124) != u32_at(h, 124))
		REFUSE("bad header checksum");
	if (u32_at(h, 8) != ROUTES_VERSION)
		REFUSE("format version %u, this plugin reads %u: write it again with the sar-agent of "
		       "this release", u32_at(h, 8), ROUTES_VERSION);
	if (u32_at(h, 12) != ROUTES_HEADER_SIZE)
		REFUSE("header size %u, not %u", u32_at(h, 12), ROUTES_HEADER_SIZE);
	if (u64_at(h, 16) != r->size)
		REFUSE("%zu bytes long, the header says %ju", r->size, (uintmax_t)u64_at(h, 16));
	r->generation = u64_at(h, 24);
	r->switches = u32_at(h, 32);
	r->terminals = u32_at(h, 36);
	r->offsets = h[40];
	r->lanes = h[41];
	r->flags = u32_at(h, 44);
	r->made_at = u64_at(h, 112);
	if (!r->generation)
		REFUSE("generation 0");
	if (!r->switches || r->switches > MAX_NODES || !r->terminals || r->terminals > MAX_NODES)
		REFUSE("%u switches and %u terminals", r->switches, r->terminals);
	if (r->flags & ~(ROUTES_HOPS | ROUTES_HAD | ROUTES_NUMBERS))
		REFUSE("unknown flags %#x", r->flags);
	if (!r->offsets || r->offsets > 128 || r->lanes < 1 + (r->flags & ROUTES_HOPS) || r->lanes > 15)
		REFUSE("%u LID offsets and %u virtual lanes", r->offsets, r->lanes);
	if (!engine_name_is_good(h + 80))
		REFUSE("bad engine name");
	memcpy(r->engine, h + 80, ROUTES_ENGINE_SIZE);
	routes_lay_out(r, &l);
	if ((unsigned)(h[42] | h[43] << 8) != l.sections)
		REFUSE("%d sections for %u virtual lanes", h[42] | h[43] << 8, r->lanes);
	if (sar_crc32(0, h + ROUTES_HEADER_SIZE, r->size - ROUTES_HEADER_SIZE) != u32_at(h, 120))
		REFUSE("bad payload checksum");
	r->columns = r->terminals + r->switches;
	return true;
}

static unsigned highest(const uint8_t *values, uint32_t count)
{
	unsigned most = 0;

	for (uint32_t i = 0; i < count; i++)
		most = values[i] > most ? values[i] : most;
	return most;
}

/* Every byte up to the end of the last section but those in sections has exactly one valid value, so it is compared rather than
 * interpreted. */
static bool find_sections(struct routes *r, struct reason *why)
{
	uint8_t table[ROUTES_LAST_ID * ROUTES_SECTION_SIZE];
	struct layout l;
	uint64_t end;

	routes_lay_out(r, &l); /* as far as section 4, it does not depend on `wide` */
	if (l.at[4] + l.length[4] > r->size)
		REFUSE("the sections run past the end");
	r->wide = 1 + highest(r->image + l.at[4], r->switches);
	routes_lay_out(r, &l);
	if (l.size != r->size)
		REFUSE("%zu bytes long, its sections need %ju", r->size, (uintmax_t)l.size);
	routes_put_table(&l, table);
	end = ROUTES_HEADER_SIZE + l.sections * ROUTES_SECTION_SIZE;
	if (memcmp(r->image + ROUTES_HEADER_SIZE, table, end - ROUTES_HEADER_SIZE))
		REFUSE("a section is missing, misplaced or of a wrong length");
	for (unsigned id = 1; id <= ROUTES_LAST_ID; id++) {
		for (; end < l.at[id]; end++)
			if (r->image[end])
				REFUSE("dirty padding before section %u", id);
		end = l.at[id] ? end + l.length[id] : end;
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

static bool all_below(const uint8_t *values, size_t count, unsigned limit)
{
	for (size_t i = 0; i < count; i++)
		if (values[i] >= limit)
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

	if (!all_below(r->senders, r->switches, 2))
		REFUSE("a switch's senders are neither 0 nor 1");
	for (size_t i = 0; i < ends; i++) {
		const uint32_t far = r->far_ends[i] >> 8, port = r->far_ends[i] & 255;

		if (r->far_ends[i] != ROUTES_NO_SWITCH &&
		    (far >= r->switches || !port || port > r->switch_ports[far]))
			REFUSE("the far end of port %zu of switch %zu is out of range", i % r->wide, i / r->wide);
	}
	for (size_t i = 0; i < ends; i++) {
		const size_t back = (size_t)(r->far_ends[i] >> 8) * r->wide + (r->far_ends[i] & 255);

		if (r->far_ends[i] != ROUTES_NO_SWITCH && r->far_ends[back] != (i / r->wide << 8 | i % r->wide))
			REFUSE("the cable at port %zu of switch %zu ends at port %u of switch %u, but not the other way "
			       "round: write the file again", i % r->wide, i / r->wide, r->far_ends[i] & 255,
			       r->far_ends[i] >> 8);
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

	if (r->hop_lanes && !all_below(r->hop_lanes, hops, r->lanes))
		REFUSE("an unused lane hop by hop");
	if (!r->service_levels)
		return true;
	if (!all_below(r->service_levels, (size_t)r->offsets * r->switches * r->columns, 16))
		REFUSE("a service level above 15");
	for (unsigned sl = 0; sl < 16; sl++)
		if (r->sl_to_vl[sl] >= r->lanes && r->sl_to_vl[sl] != ROUTES_DROPPED)
			REFUSE("an SL maps to an unused lane");
	if (!all_below(r->fallback_sl, r->offsets, 16))
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

static bool read_all(int file, uint8_t *image, size_t size)
{
	for (size_t done = 0; done < size;) {
		ssize_t got = read(file, image + done, size - done);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return false;
		done += (size_t)got;
	}
	return true;
}

struct routes *routes_read(const char *path, struct reason *why)
{
	struct reason inner = {.text = ""};
	struct routes *r = NULL;
	struct stat info;
	/* O_NONBLOCK, so that a FIFO of that name cannot block OpenSM. O_NOFOLLOW, since root opens
	 * the file in a folder of another user: a link could lead to a device. */
	int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);

	if (file < 0 || fstat(file, &info)) {
		REASON(why, "cannot read %.300s: %s", path,
		       errno == ELOOP ? "it is a link; put the file itself there" : strerror(errno));
	} else if (!S_ISREG(info.st_mode) || (uint64_t)info.st_size > MAX_FILE_SIZE) {
		REASON(why, "%.300s is not a routes file (not regular, or too large)", path);
	} else {
		size_t size = (size_t)info.st_size;
		uint8_t *image = malloc(size ? size : 1);

		if (!image || !read_all(file, image, size)) {
			REASON(why, "cannot read %.300s: %s", path, image ? "read error" : "no memory");
			free(image);
		} else if (!(r = routes_from_image(image, size, &inner))) {
			REASON(why, "%.300s is invalid: %.180s", path, inner.text);
		}
	}
	if (file >= 0)
		close(file);
	return r;
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

static int by_value(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

void guid_sort(uint64_t *guids, uint32_t count)
{
	qsort(guids, count, sizeof(*guids), by_value);
}

uint32_t guid_index(const uint64_t *guids, uint32_t count, uint64_t guid)
{
	uint32_t low = 0, high = count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (guids[middle] < guid)
			low = middle + 1;
		else
			high = middle;
	}
	return low < count && guids[low] == guid ? low : count;
}
