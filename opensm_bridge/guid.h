/* GUIDs in order, and hashes. */
#pragma once
#include <stdint.h>
#include <stdlib.h>

/* Compares GUIDs, or structures that begin with one, for qsort() and bsearch(). */
static inline int guid_order(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* The index of a GUID in an ascending list; `count` if it is not in the list. */
static inline uint32_t guid_index(const uint64_t *guids, uint32_t count, uint64_t guid)
{
	const uint64_t *found = bsearch(&guid, guids, count, sizeof(guid), guid_order);

	return found ? (uint32_t)(found - guids) : count;
}

/* One step of a 64-bit hash; not cryptographic. */
static inline uint64_t hash_mix(uint64_t hash, uint64_t value)
{
	hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
	return hash ^ hash >> 29;
}
