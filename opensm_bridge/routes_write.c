/* The bytes of a routes file. */
#include "routes_write.h"

#include <stdlib.h>
#include <string.h>

#include "crc32.h"
#include "write_file.h"

static void put_header(struct routes *r)
{
	uint8_t *h = r->image;

	memcpy(h, "SARROUTE", 8);
	put_bytes(h, 8, ROUTES_VERSION, 4);
	put_bytes(h, 12, ROUTES_HEADER_SIZE, 4);
	put_bytes(h, 16, r->size, 8);
	put_bytes(h, 24, r->generation, 8);
	put_bytes(h, 32, r->switches, 4);
	put_bytes(h, 36, r->terminals, 4);
	put_bytes(h, 40, r->offsets, 1);
	put_bytes(h, 41, r->lanes, 1);
	put_bytes(h, 42, routes_count_sections(r), 2);
	put_bytes(h, 44, r->flags, 4);
	memcpy(h + 80, r->engine, ROUTES_ENGINE_SIZE);
	put_bytes(h, 112, r->made_at, 8);
}

struct routes *routes_blank(const struct routes *sizes)
{
	uint8_t *section[ROUTES_LAST_ID + 1] = {NULL};
	uint64_t length[ROUTES_LAST_ID + 1];
	size_t at[ROUTES_LAST_ID + 1], end = ROUTES_HEADER_SIZE + 24 * routes_count_sections(sizes), entry = ROUTES_HEADER_SIZE;
	struct routes *r = malloc(sizeof(*r));

	routes_section_lengths(sizes, length);
	for (unsigned id = 1; id <= ROUTES_LAST_ID; id++)
		if (routes_has(sizes, id)) {
			at[id] = (end + 7) & ~(size_t)7;
			end = at[id] + length[id];
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
	put_header(r);
	for (unsigned id = 1; id <= ROUTES_LAST_ID; id++)
		if (routes_has(sizes, id)) {
			put_bytes(r->image, entry, id, 4);
			put_bytes(r->image, entry + 8, at[id], 8);
			put_bytes(r->image, entry + 16, length[id], 8);
			section[id] = r->image + at[id];
			entry += 24;
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
	put_bytes(r->image, 120, sar_crc32(0, r->image + ROUTES_HEADER_SIZE, r->size - ROUTES_HEADER_SIZE), 4);
	put_bytes(r->image, 124, sar_crc32(0, r->image, 124), 4);
}

bool routes_write(const struct routes *r, const char *path, struct reason *why)
{
	return write_file(path, r->image, r->size, why);
}
