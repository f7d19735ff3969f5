/* Building a routes file: the other half of routes_file.h, for the dump of what is in force. */
#ifndef SAR_ROUTES_WRITE_H
#define SAR_ROUTES_WRITE_H
#include <stdbool.h>

#include "routes_file.h"

/*
 * An empty image for the sizes that `r` names (generation, switches, terminals, offsets, lanes,
 * engine, made_at, wide and flags), with header and section table; the arrays of `r` then point into
 * it and are filled through ROUTES_FILL. NULL without memory.
 */
struct routes *routes_blank(const struct routes *sizes);
/* A pointer of a blank routes object that may be written through. */
#define ROUTES_FILL(type, array) ((type *)(uintptr_t)(array))
void routes_seal(struct routes *r); /* checksums, once the arrays are full */
/* Temporary, fsync, rename, fsync the folder. */
bool routes_write(const struct routes *r, const char *path, struct reason *why);

#endif
