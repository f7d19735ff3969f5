/* A message as a file, for nodes without munge. */
#ifndef SAR_SPOOL_H
#define SAR_SPOOL_H
#include <stdbool.h>
#include <stddef.h>

#include "reason.h"

/* FOLDER/ID.json, there at once or not at all. */
bool spool_write(const char *folder, const char *id, const char *payload, size_t length, struct reason *why);

#endif
