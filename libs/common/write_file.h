/* Replaces a file atomically: a reader sees the old file or the whole new one. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "reason.h"

/* The file gets mode 0644. False and `why` on failure; then the old file stays, and no temporary is left. */
bool write_file(const char *path, const void *bytes, size_t size, struct reason *why);
