/*
 * Hop counts between all switches, kept from one routing to the next: a change of the fabric costs a search only for the
 * targets whose hop counts it may change.
 */
#ifndef SAR_HOPS_H
#define SAR_HOPS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "live.h"

#define HOPS_UNREACHABLE 255
#define HOPS_MOST 254 /* the largest distance in OpenSM's tables */

struct hops {
	uint32_t switches, ports; /* of the fabric for which they hold; `ports` is the length of `peer` */
	uint64_t *guid;
	uint32_t *peer;
	uint8_t *count; /* [target][switch] */
};

/* Makes the counts those of this fabric; false without memory, and then nothing is kept. */
bool hops_update(struct hops *h, const struct live *live);
void hops_free(struct hops *h);

static inline const uint8_t *hops_of(const struct hops *h, uint32_t target)
{
	return h->count + (size_t)target * h->switches;
}

#endif
