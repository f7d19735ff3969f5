/* Builds routes files: the dump of what is in force, and copies; routes_file.c reads them. */
#include "routes_image.h"

#include <stdlib.h>
#include <string.h>

#include "crc32.h"
#include "write_file.h"

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

void routes_lay_out(const struct routes *r, struct routes_layout *l)
{
	const uint64_t s = r->switches, t = r->terminals, wide = r->wide, table = r->offsets * s * (s + t);
	const uint64_t length[ROUTES_LAST_ID + 1] = {
		0, 8 * s, 8 * t, 4 * t, s, table, table, 16, r->offsets, s * wide * wide, 4 * s * wide, s, table,
		4 * r->lanes * s * wide, 4 * s * wide};

	*l = (struct routes_layout){.sections = 0};
	for (unsigned id = 1; id <= ROUTES_LAST_ID; id++)
		if (has(r, id))
			l->section[l->sections++] = (struct routes_section){.id = id, .length = length[id]};
	l->size = ROUTES_HEADER_SIZE + l->sections * sizeof(*l->section);
	for (unsigned i = 0; i < l->sections; i++) {
		l->section[i].at = (l->size + 7) & ~(uint64_t)7;
		l->size = l->section[i].at + l->section[i].length;
	}
}

/* Sections are aligned to 8 bytes, and so is an image from malloc(). */
void routes_set_arrays(struct routes *r, const struct routes_layout *l)
{
	memset(r->section, 0, sizeof(r->section));
	for (unsigned i = 0; i < l->sections; i++)
		r->section[l->section[i].id] = r->image + l->section[i].at;
}

uint32_t routes_payload_crc(const struct routes *r)
{
	return sar_crc32(0, r->image + ROUTES_HEADER_SIZE, r->size - ROUTES_HEADER_SIZE);
}

uint32_t routes_header_crc(const struct routes *r)
{
	return sar_crc32(0, r->image, offsetof(struct routes_header, header_crc));
}

struct routes *routes_blank(const struct routes *sizes)
{
	struct routes *r = malloc(sizeof(*r));
	struct routes_header *h;
	struct routes_layout l;

	if (!r)
		return NULL;
	*r = *sizes;
	routes_lay_out(r, &l);
	r->holders = 1;
	r->amended = NULL;
	r->columns = r->switches + r->terminals;
	r->size = l.size;
	r->image = calloc(1, l.size);
	if (!r->image) {
		free(r);
		return NULL;
	}
	h = (void *)r->image;
	*h = (struct routes_header){.version = ROUTES_VERSION, .size = sizeof(*h), .file_size = r->size,
				    .generation = r->generation, .switches = r->switches, .terminals = r->terminals,
				    .offsets = (uint8_t)r->offsets, .lanes = (uint8_t)r->lanes,
				    .sections = (uint16_t)l.sections, .flags = r->flags, .made_at = r->made_at};
	memcpy(h->magic, ROUTES_MAGIC, sizeof(h->magic));
	memcpy(h->engine, r->engine, sizeof(h->engine));
	if (sizes->image)
		memcpy(h->fabric_digest, ((const struct routes_header *)sizes->image)->fabric_digest, sizeof(h->fabric_digest));
	memcpy(h + 1, l.section, l.sections * sizeof(*l.section));
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
	struct routes_header *h = (void *)r->image;

	h->payload_crc = routes_payload_crc(r);
	h->header_crc = routes_header_crc(r);
}

bool routes_write(struct routes *r, const char *path, struct reason *why)
{
	routes_seal(r);
	return write_file(path, r->image, r->size, why);
}
