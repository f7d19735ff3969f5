/* Replaces a file atomically: a reader sees the old file or the whole new one. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "reason.h"

/* Little-endian, whatever the alignment. */
static inline void put_bytes(uint8_t *image, size_t at, uint64_t value, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++)
		image[at + i] = (uint8_t)(value >> 8 * i);
}

/* The file gets mode 0644. False and `why` on failure; then the old file stays, and no temporary is left. */
bool write_file(const char *path, const void *bytes, size_t size, struct reason *why);
