/* The bytes of a routes file. */
#include "routes_write.h"

#include <stdlib.h>
#include <string.h>

#include "crc32.h"
#include "write_file.h"

static void put(uint8_t *image, size_t at, uint64_t value, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++)
		image[at + i] = (uint8_t)(value >> 8 * i);
}

static void put_header(struct routes *r, unsigned sections)
{
	uint8_t *h = r->image;

	memcpy(h, "SARROUTE", 8);
	put(h, 8, ROUTES_VERSION, 4);
	put(h, 12, ROUTES_HEADER_SIZE, 4);
	put(h, 16, r->size, 8);
	put(h, 24, r->generation, 8);
	put(h, 32, r->switches, 4);
	put(h, 36, r->terminals, 4);
	put(h, 40, r->offsets, 1);
	put(h, 41, r->lanes, 1);
	put(h, 42, sections, 2);
	put(h, 44, r->flags, 4);
	memcpy(h + 80, r->engine, ROUTES_ENGINE_SIZE);
	put(h, 112, r->made_at, 8);
}

struct routes *routes_blank(const struct routes *sizes)
{
	unsigned sections;
	const uint8_t *id = routes_section_ids(sizes->flags, sizes->lanes, &sections);
	uint8_t *section[ROUTES_LAST_ID + 1] = {NULL};
	uint64_t length[ROUTES_LAST_ID + 1];
	size_t at[ROUTES_MAX_SECTIONS] = {0}, end = ROUTES_HEADER_SIZE + 24 * sections;
	struct routes *r = malloc(sizeof(*r));

	routes_section_lengths(sizes, length);
	for (unsigned i = 0; i < sections; i++) {
		at[i] = (end + 7) & ~(size_t)7;
		end = at[i] + length[id[i]];
	}
	if (!r)
		return NULL;
	*r = *sizes;
	r->holders = 1;
	r->amended = NULL;
	r->columns = sizes->switches + sizes->terminals;
	r->size = end;
	r->image = calloc(1, end);
	if (!r->image) {
		free(r);
		return NULL;
	}
	put_header(r, sections);
	for (unsigned i = 0; i < sections; i++) {
		put(r->image, ROUTES_HEADER_SIZE + 24 * i, id[i], 4);
		put(r->image, ROUTES_HEADER_SIZE + 24 * i + 8, at[i], 8);
		put(r->image, ROUTES_HEADER_SIZE + 24 * i + 16, length[id[i]], 8);
		section[id[i]] = r->image + at[i];
	}
	routes_set_arrays(r, section);
	return r;
}

struct routes *routes_copy(const struct routes *r)
{
	struct routes *copy = routes_blank(r);

	if (copy)
		memcpy(copy->image, r->image, r->size);
	return copy;
}

void routes_seal(struct routes *r)
{
	put(r->image, 120, sar_crc32(0, r->image + ROUTES_HEADER_SIZE, r->size - ROUTES_HEADER_SIZE), 4);
	put(r->image, 124, sar_crc32(0, r->image, 124), 4);
}

uint32_t routes_payload_crc(const struct routes *r)
{
	uint32_t crc = 0;

	for (unsigned i = 0; i < 4; i++)
		crc |= (uint32_t)r->image[120 + i] << 8 * i;
	return crc;
}

bool routes_write(const struct routes *r, const char *path, struct reason *why)
{
	return write_file(path, r->image, r->size, false, why);
}
