/* The bytes of a fabric file. */
#include "fabric_file.h"

#include <stdlib.h>
#include <string.h>

#include "crc32.h"
#include "guid.h"
#include "write_file.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the arrays are written in the byte order of memory");

bool fabric_file_blank(struct fabric_file *f)
{
	const size_t nodes = f->nodes, ports = f->ports, links = f->links;
	uint8_t *at;

	f->size = FABRIC_HEADER_SIZE + 11 * nodes + 19 * ports + 8 * links + f->name_bytes;
	f->image = calloc(1, f->size);
	if (!f->image)
		return false;
	at = f->image + FABRIC_HEADER_SIZE;
	/* The widest types come first, so that each array is aligned. */
	f->node_guid = (void *)at;
	f->port_guid = f->node_guid + nodes;
	f->port_node = (void *)(f->port_guid + ports);
	f->link_from = f->port_node + ports;
	f->link_to = f->link_from + links;
	f->port_lid = (void *)(f->link_to + links);
	f->node_type = (void *)(f->port_lid + ports);
	f->node_ports = f->node_type + nodes;
	f->name_length = f->node_ports + nodes;
	f->port_number = f->name_length + nodes;
	f->port_lmc = f->port_number + ports;
	f->port_state = f->port_lmc + ports;
	f->port_width = f->port_state + ports;
	f->port_speed = f->port_width + ports;
	f->names = f->port_speed + ports;
	return true;
}

/* Distinguishes two fabrics; not cryptographic, because a forger would have access to OpenSM's folder already. */
static uint64_t digest_of(const uint8_t *bytes, size_t size)
{
	uint64_t hash = size;

	for (size_t at = 0; at < size; at += sizeof(uint64_t)) {
		uint64_t word = 0;

		memcpy(&word, bytes + at, size - at < sizeof(word) ? size - at : sizeof(word));
		hash = hash_mix(hash, word);
	}
	return hash;
}

void fabric_file_seal(struct fabric_file *f)
{
	uint8_t *h = f->image, *payload = f->image + FABRIC_HEADER_SIZE;
	const size_t size = f->size - FABRIC_HEADER_SIZE;

	f->digest = digest_of(payload, size);
	memcpy(h, "SARFABRI", 8);
	put_bytes(h, 8, 1, 4);
	put_bytes(h, 12, FABRIC_HEADER_SIZE, 4);
	put_bytes(h, 16, f->size, 8);
	put_bytes(h, 24, f->nodes, 4);
	put_bytes(h, 28, f->ports, 4);
	put_bytes(h, 32, f->links, 4);
	put_bytes(h, 36, f->name_bytes, 4);
	put_bytes(h, 40, f->made_at, 8);
	put_bytes(h, 48, f->digest, 8);
	put_bytes(h, 56, sar_crc32(0, payload, size), 4);
	put_bytes(h, 60, sar_crc32(0, h, 60), 4);
}

bool fabric_file_write(const struct fabric_file *f, const char *path, struct reason *why)
{
	return write_file(path, f->image, f->size, why);
}

void fabric_file_free(struct fabric_file *f)
{
	free(f->image);
	memset(f, 0, sizeof(*f));
}
