/* The CRC-32 of zlib, implemented here so that the plugin needs no library that OpenSM does not load anyway. */
#pragma once
#include <stddef.h>
#include <stdint.h>

/* `crc` is 0 for the first bytes, and then the result for the preceding ones. */
uint32_t sar_crc32(uint32_t crc, const void *bytes, size_t length);
