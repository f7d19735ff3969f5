/* The bytes of a routes file (FORMAT.md): header, section table, and where each section is. */
#pragma once
#include "routes_file.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "routes files are used in place and are little-endian"
#endif

struct routes_header {
	char magic[8];
	uint32_t version, size;
	uint64_t file_size, generation;
	uint32_t switches, terminals;
	uint8_t offsets, lanes;
	uint16_t sections;
	uint32_t flags;
	uint8_t fabric_digest[32];
	char engine[ROUTES_ENGINE_SIZE];
	uint64_t made_at;
	uint32_t payload_crc, header_crc;
};
_Static_assert(sizeof(struct routes_header) == ROUTES_HEADER_SIZE, "the header has no gaps");

struct routes_section {
	uint32_t id, zero;
	uint64_t at, length;
};
struct routes_layout {
	struct routes_section section[ROUTES_LAST_ID];
	unsigned sections;
	uint64_t size; /* of the file */
};

/* The sections of a file with the sizes in `r`. */
void routes_lay_out(const struct routes *r, struct routes_layout *l);
/* Sets the arrays of `r` to the sections of its image. */
void routes_set_arrays(struct routes *r, const struct routes_layout *l);
/* Sums of a sealed image: of all bytes after the header, and of the header before its own. */
uint32_t routes_payload_crc(const struct routes *r);
uint32_t routes_header_crc(const struct routes *r);

/*
 * Returns an empty image with header and section table for what `sizes` has set (generation, switches, terminals, offsets,
 * lanes, engine, made_at, wide and flags; the digest of the fabric, if it has an image). Its arrays point into the image and
 * are filled in through ROUTES_FILL. NULL without memory.
 */
struct routes *routes_blank(const struct routes *sizes);
/* A writable pointer to an array of a blank routes object. */
#define ROUTES_FILL(type, array) ((type *)(uintptr_t)(array))
/* A copy with an image of its own, as it was read; NULL without memory. */
struct routes *routes_copy(const struct routes *r);
void routes_seal(struct routes *r); /* writes the checksums, once the arrays are filled in */
/* Seals, and replaces the file atomically (write_file.h) without waiting for the disk: it is read back at once, or not at all. */
bool routes_write(struct routes *r, const char *path, struct reason *why);
