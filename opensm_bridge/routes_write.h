/* Builds a routes file, for the dump of what is in force; routes_file.h reads one. */
#pragma once
#include <stdbool.h>

#include "routes_file.h"

/*
 * Returns an empty image with header and section table for what `sizes` has set (generation, switches, terminals, offsets,
 * lanes, engine, made_at, wide and flags). Its arrays point into the image and are filled in through ROUTES_FILL. NULL
 * without memory.
 */
struct routes *routes_blank(const struct routes *sizes);
/* A writable pointer to an array of a blank routes object. */
#define ROUTES_FILL(type, array) ((type *)(uintptr_t)(array))
/* A copy with an image of its own, as it was read; NULL without memory. */
struct routes *routes_copy(const struct routes *r);
void routes_seal(struct routes *r); /* writes the checksums, once the arrays are filled in */
/* Replaces the file atomically (write_file.h), without waiting for the disk: it is read back at once, or not at all. */
bool routes_write(const struct routes *r, const char *path, struct reason *why);
