/*
 * The fabric file of FABRIC.md: the fabric that OpenSM discovered, for an agent without access to umad. Without OpenSM's
 * types, so that the writer can be tested without OpenSM; fabric.c fills it in.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "reason.h"
#include "sealed_file.h"

#define FABRIC_HEADER_SIZE sizeof(struct sealed_header)
#define FABRIC_UNHEALTHY 0x80 /* bit of `port_state` */

enum fabric_type { FABRIC_CA = 1, FABRIC_SWITCH = 2, FABRIC_ROUTER = 3 };
enum fabric_speed { SPEED_UNKNOWN, SDR, DDR, QDR, FDR_10, FDR, EDR, HDR, NDR };

struct fabric_file {
	uint32_t nodes, ports, links, name_bytes;
	uint64_t made_at, digest; /* Unix seconds; hash of all bytes after the header */
	/* The arrays point into `image`; GUIDs and LIDs are in host byte order. */
	uint64_t *node_guid;	       /* [nodes], ascending */
	uint64_t *port_guid;	       /* [ports] */
	uint32_t *port_node;	       /* [ports], ascending; ports of a node by number */
	uint32_t *link_from, *link_to; /* [links]: ports; from < to, from ascending */
	uint16_t *port_lid;
	uint8_t *node_type, *node_ports, *name_length; /* [nodes] */
	uint8_t *port_number, *port_lmc, *port_state, *port_width, *port_speed;
	uint8_t *names; /* [name_bytes], one after the other */
	uint8_t *image;
	size_t size;
};

/* Allocates zeroed arrays for the four sizes that are set in `f`; false without memory. */
bool fabric_file_blank(struct fabric_file *f);
/* Writes header, digest and checksums, once the arrays are filled in. */
void fabric_file_seal(struct fabric_file *f);
/* Replaces the file atomically (write_file.h). */
bool fabric_file_write(const struct fabric_file *f, const char *path, struct reason *why);
void fabric_file_free(struct fabric_file *f);
