/* A file in one step: a reader sees the old one or the whole new one, also after a power cut. */
#ifndef SAR_WRITE_FILE_H
#define SAR_WRITE_FILE_H
#include <stdbool.h>
#include <stddef.h>

#include "reason.h"

/* With mode 0644. False, and why: then the old file stays, and nothing else is left. */
bool write_file(const char *path, const void *bytes, size_t size, struct reason *why);

#endif
