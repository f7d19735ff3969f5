/* Replaces a file atomically: a reader sees the old file or the whole new one. */
#ifndef SAR_WRITE_FILE_H
#define SAR_WRITE_FILE_H
#include <stdbool.h>
#include <stddef.h>

#include "reason.h"

/* The file gets mode 0644. `sync`: it is on the disk on return, and whole even after a power cut. False and `why` on failure;
 * then the old file stays, and no temporary is left. */
bool write_file(const char *path, const void *bytes, size_t size, bool sync, struct reason *why);

#endif
