/*
 * CRC-32, eight bytes per step: the routes file of a large fabric has tens of megabytes and is checked while OpenSM waits,
 * so the plain loop over bytes would take longer than all other checks together.
 */
#include "crc32.h"

#include <endian.h>
#include <pthread.h>
#include <string.h>

static uint32_t table[8][256];

static void fill_table(void)
{
	for (uint32_t i = 0; i < 256; i++) {
		uint32_t crc = i;
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
		table[0][i] = crc;
	}
	for (int k = 1; k < 8; k++)
		for (uint32_t i = 0; i < 256; i++)
			table[k][i] = table[k - 1][i] >> 8 ^ table[0][table[k - 1][i] & 0xff];
}

uint32_t sar_crc32(uint32_t crc, const void *bytes, size_t length)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	const uint8_t *at = bytes;

	pthread_once(&once, fill_table);
	crc = ~crc;
	for (; length >= 8; length -= 8, at += 8) {
		uint64_t word;
		memcpy(&word, at, 8);
		word = le64toh(word) ^ crc;
		crc = 0;
		for (int k = 0; k < 8; k++)
			crc ^= table[7 - k][word >> 8 * k & 0xff];
	}
	for (; length; length--, at++)
		crc = crc >> 8 ^ table[0][(crc ^ *at) & 0xff];
	return ~crc;
}
