/* The bytes of a routes file. */
#include "routes_write.h"

#include <stdlib.h>
#include <string.h>

#include "crc32.h"
#include "write_file.h"

struct routes *routes_blank(const struct routes *sizes)
{
	struct routes *r = malloc(sizeof(*r));
	struct layout l;

	if (!r)
		return NULL;
	*r = *sizes;
	routes_lay_out(r, &l);
	r->holders = 1;
	r->amended = NULL;
	r->columns = sizes->switches + sizes->terminals;
	r->size = l.size;
	r->image = calloc(1, l.size);
	if (!r->image) {
		free(r);
		return NULL;
	}
	memcpy(r->image, "SARROUTE", 8);
	put_bytes(r->image, 8, ROUTES_VERSION, 4);
	put_bytes(r->image, 12, ROUTES_HEADER_SIZE, 4);
	put_bytes(r->image, 16, r->size, 8);
	put_bytes(r->image, 24, r->generation, 8);
	put_bytes(r->image, 32, r->switches, 4);
	put_bytes(r->image, 36, r->terminals, 4);
	put_bytes(r->image, 40, r->offsets, 1);
	put_bytes(r->image, 41, r->lanes, 1);
	put_bytes(r->image, 42, l.sections, 2);
	put_bytes(r->image, 44, r->flags, 4);
	memcpy(r->image + 80, r->engine, ROUTES_ENGINE_SIZE);
	put_bytes(r->image, 112, r->made_at, 8);
	routes_put_table(&l, r->image + ROUTES_HEADER_SIZE);
	routes_set_arrays(r, &l);
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
