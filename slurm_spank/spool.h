/* A message as a file, for nodes without munge, and for when the agent cannot be reached. */
#ifndef SAR_SPOOL_H
#define SAR_SPOOL_H
#include <stdbool.h>
#include <stddef.h>

#include "reason.h"

/* Writes FOLDER/ID.json under a temporary name and renames it, so that a reader sees the whole file or none. */
bool spool_write(const char *folder, const char *id, const char *payload, size_t length, struct reason *why);

#endif
