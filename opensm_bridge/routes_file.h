/* The routes file of FORMAT.md, read into memory and checked as a whole. */
#ifndef SAR_ROUTES_FILE_H
#define SAR_ROUTES_FILE_H
#include <stddef.h>
#include <stdint.h>

#include "reason.h"

#define ROUTES_HEADER_SIZE 128
#define ROUTES_ENGINE_SIZE 32
#define ROUTES_DIGEST_SIZE 32
#define ROUTES_NO_ROUTE 255
#define ROUTES_NO_SWITCH UINT32_MAX
#define ROUTES_VERSION 3
#define ROUTES_MAX_SECTIONS 11
#define ROUTES_LAST_ID 12
#define ROUTES_HOPS 1u /* flags */
#define ROUTES_HAD 2u
#define ROUTES_UNKNOWN 254 /* in `had` */
#define ROUTES_DROPPED 15  /* in `sl_to_vl` */

struct routes {
	_Atomic unsigned holders;
	uint64_t generation, made_at;
	uint32_t switches, terminals, columns; /* columns = terminals + switches */
	unsigned offsets, lanes;
	char engine[ROUTES_ENGINE_SIZE];
	/* The arrays point into `image`. */
	const uint64_t *switch_guid, *terminal_guid;
	const uint32_t *terminal_leaf;
	const uint8_t *switch_ports;
	const uint8_t *forwarding;     /* [offsets][switches][columns] */
	unsigned flags, wide;	       /* wide: highest port of all switches + 1 */
	const uint32_t *far_ends; /* [switches][wide]: switch << 8 | port, or ROUTES_NO_SWITCH */
	const uint8_t *senders;	  /* [switches] 1: hosts there that the file does not know may send */
	/* Lanes by path: NULL with one lane, and with lanes hop by hop. */
	const uint8_t *service_levels; /* [offsets][switches][columns] */
	const uint8_t *sl_to_vl, *fallback_sl;
	const uint8_t *hop_lanes; /* [switches][wide in][wide out], or NULL */
	const uint8_t *had;	  /* dumps only: as `forwarding`; what a switch may have instead */
	uint8_t *image;
	size_t size;
};

/* The file as one checked object with one holder, or NULL and why. */
struct routes *routes_read(const char *path, struct reason *why);
/* The same from memory; takes over `image` (malloc'ed), which it frees on failure. */
struct routes *routes_from_image(uint8_t *image, size_t size, struct reason *why);
struct routes *routes_hold(struct routes *routes);
void routes_drop(struct routes *routes); /* NULL is fine */

static inline const uint8_t *routes_row(const struct routes *r, const uint8_t *table,
					unsigned offset, uint32_t row)
{
	return table + ((size_t)offset * r->switches + row) * r->columns;
}

/* The lane of what enters live row `row` by port `in` and leaves by `out`, hop by hop. */
static inline uint8_t routes_hop_lane(const struct routes *r, uint32_t row, unsigned in,
				      unsigned out)
{
	return in < r->wide && out < r->wide ? r->hop_lanes[((size_t)row * r->wide + in) * r->wide + out]
					     : 0;
}

/* The ids of a file's sections, in order; `count` gets how many. */
const uint8_t *routes_section_ids(unsigned flags, unsigned lanes, unsigned *count);

/* The length of each section by its id, for the sizes that `r` names. */
void routes_section_lengths(const struct routes *r, uint64_t length[ROUTES_LAST_ID + 1]);
/* Point the arrays of `r` to its sections, by id; NULL where there is none. */
void routes_set_arrays(struct routes *r, uint8_t *const section[ROUTES_LAST_ID + 1]);

/* Where a GUID stands in an ascending list, or `count` where it does not. */
uint32_t guid_index(const uint64_t *guids, uint32_t count, uint64_t guid);

#endif
