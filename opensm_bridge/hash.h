/* One step of a 64-bit hash; not cryptographic. */
#pragma once
#include <stdint.h>

static inline uint64_t hash_mix(uint64_t hash, uint64_t value)
{
	hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
	return hash ^ hash >> 29;
}
