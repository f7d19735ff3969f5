/* The header of the file that the plugin writes for the agent (FABRIC.md); little-endian. */
#pragma once
#include <stddef.h>
#include <stdint.h>

struct sealed_header {
	char magic[8];
	uint32_t version, size;
	uint64_t file_size;
	uint32_t count[4];
	uint64_t made_at, digest;
	uint32_t payload_crc, header_crc;
};

/* Writes the header of an image whose arrays are filled in: `h` has the counts, the time and the digest. */
void seal_file(uint8_t *image, size_t size, const char magic[8], struct sealed_header h);
