/* The bytes of a fabric file. */
#include "fabric_file.h"

#include <stdlib.h>
#include <string.h>

#include "guid.h"
#include "sealed_file.h"
#include "write_file.h"

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
	f->digest = digest_of(f->image + FABRIC_HEADER_SIZE, f->size - FABRIC_HEADER_SIZE);
	seal_file(f->image, f->size, "SARFABRI", (struct sealed_header){.count = {f->nodes, f->ports, f->links, f->name_bytes},
									.made_at = f->made_at, .digest = f->digest});
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
