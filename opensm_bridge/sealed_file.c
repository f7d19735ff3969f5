/* See sealed_file.h. */
#include "sealed_file.h"

#include <string.h>

#include "crc32.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "files are written in the byte order of memory");
_Static_assert(sizeof(struct sealed_header) == 64, "the header has no gaps");

void seal_file(uint8_t *image, size_t size, const char magic[8], struct sealed_header h)
{
	memcpy(h.magic, magic, sizeof(h.magic));
	h.version = 1;
	h.size = sizeof(h);
	h.file_size = size;
	h.payload_crc = sar_crc32(0, image + sizeof(h), size - sizeof(h));
	h.header_crc = sar_crc32(0, &h, offsetof(struct sealed_header, header_crc));
	memcpy(image, &h, sizeof(h));
}
