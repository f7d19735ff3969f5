/*
 * Writes the discovered subnet to a file for the agent, which then needs neither ibnetdiscover nor the right to send MADs
 * (umad) in install mode.
 *
 * OpenSM updates its subnet node by node during a sweep, so the copy is taken only between a sweep's routing, when all nodes and
 * LIDs are known, and the next sweep. **Weak spot:** that OpenSM reports the start of a sweep before it changes anything is read
 * from 3.3.23; otherwise a copy could lack nodes that are there.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "bridge.h"
#include "clock.h"
#include "fabric_file.h"

#define PATIENCE_SECONDS 5 /* seconds: a sweep of a large fabric is a second or two */
#define PAUSE_NS 5000000 /* ns between two attempts */

struct walk {
	osm_subn_t *subn;
	osm_node_t **node; /* ascending GUIDs */
	uint32_t *first;   /* for each node, the index in `port` of its port 0 */
	uint32_t *port;	   /* by node and port number: the index of the port in the file */
	struct fabric_file file;
};

static bool is_switch(const osm_node_t *node)
{
	return osm_node_get_type(node) == IB_NODE_TYPE_SWITCH;
}

/* Only switches have a port 0. */
static osm_physp_t *port_of(osm_node_t *node, unsigned number)
{
	return number || is_switch(node) ? osm_node_get_physp_ptr(node, number) : NULL;
}

static bool has_cable(const osm_physp_t *port)
{
	return port->port_num && port->p_remote_physp;
}

static int by_guid(const void *a, const void *b)
{
	const osm_node_t *const *x = a, *const *y = b;
	const uint64_t gx = cl_ntoh64(osm_node_get_node_guid(*x));
	const uint64_t gy = cl_ntoh64(osm_node_get_node_guid(*y));

	return gx < gy ? -1 : gx > gy;
}

static bool list_nodes(struct walk *w)
{
	const cl_qmap_t *all = &w->subn->node_guid_tbl;

	w->node = calloc(cl_qmap_count(all) + 1, sizeof(*w->node));
	if (!w->node)
		return false;
	EACH_ITEM(osm_node_t, node, all)
		w->node[w->file.nodes++] = node;
	qsort(w->node, w->file.nodes, sizeof(*w->node), by_guid);
	return true;
}

/* A host's node description, which may be any bytes; for a switch the name that the site gives it, if any. */
static const char *name_of(const osm_node_t *node, size_t *length)
{
	if (is_switch(node) && node->print_desc) {
		*length = strnlen(node->print_desc, UINT8_MAX);
		return node->print_desc;
	}
	/* Without its last byte, like OpenSM and ibnetdiscover print it. */
	*length = strnlen((const char *)node->node_desc.description, IB_NODE_DESCRIPTION_SIZE - 1);
	return (const char *)node->node_desc.description;
}

/* Counts nodes, ports, links and bytes of names, and assigns the index of each port. */
static bool count(struct walk *w)
{
	uint32_t slots = 0, ends = 0;
	size_t length;

	w->first = calloc(w->file.nodes + 1, sizeof(*w->first));
	if (!w->first)
		return false;
	for (uint32_t n = 0; n < w->file.nodes; n++) {
		w->first[n] = slots;
		slots += osm_node_get_num_physp(w->node[n]);
		name_of(w->node[n], &length);
		w->file.name_bytes += (uint32_t)length;
	}
	w->port = calloc(slots + 1, sizeof(*w->port));
	if (!w->port)
		return false;
	for (uint32_t n = 0; n < w->file.nodes; n++)
		for (unsigned p = 0; p < osm_node_get_num_physp(w->node[n]); p++) {
			const osm_physp_t *port = port_of(w->node[n], p);

			if (!port)
				continue;
			ends += has_cable(port);
			w->port[w->first[n] + p] = w->file.ports++;
		}
	w->file.links = ends / 2;
	return fabric_file_blank(&w->file);
}

static uint8_t lanes_of(const osm_physp_t *port)
{
	static const uint8_t lanes[] = {[IB_LINK_WIDTH_ACTIVE_1X] = 1, [IB_LINK_WIDTH_ACTIVE_2X] = 2,
					[IB_LINK_WIDTH_ACTIVE_4X] = 4, [IB_LINK_WIDTH_ACTIVE_8X] = 8,
					[IB_LINK_WIDTH_ACTIVE_12X] = 12};
	const unsigned width = port->port_info.link_width_active;

	return width < sizeof(lanes) ? lanes[width] : 0;
}

/* Like ibnetdiscover: for a switch, the capabilities of port 0 say whether its ports have extended speeds. */
static uint8_t speed_of(const osm_node_t *node, const osm_physp_t *port)
{
	static const uint8_t extended[] = {[IB_LINK_SPEED_EXT_ACTIVE_14] = FDR, [IB_LINK_SPEED_EXT_ACTIVE_25] = EDR,
					   [IB_LINK_SPEED_EXT_ACTIVE_50] = HDR, [8] = NDR /* newer than OpenSM's headers */},
			     plain[] = {[IB_LINK_SPEED_ACTIVE_2_5] = SDR, [IB_LINK_SPEED_ACTIVE_5] = DDR,
					[IB_LINK_SPEED_ACTIVE_10] = QDR};
	const osm_physp_t *capable = is_switch(node) ? &node->physp_table[0] : port;
	const unsigned speed = ib_port_info_get_link_speed_active(&port->port_info);
	const unsigned more = capable->port_info.capability_mask & IB_PORT_CAP_HAS_EXT_SPEEDS ?
		ib_port_info_get_link_speed_ext_active(&port->port_info) : 0;

	if (more)
		return more < sizeof(extended) ? extended[more] : SPEED_UNKNOWN;
	if (speed == IB_LINK_SPEED_ACTIVE_10 && port->ext_port_info.link_speed_active & FDR10)
		return FDR_10;
	return speed < sizeof(plain) ? plain[speed] : SPEED_UNKNOWN;
}

static void fill_port(struct walk *w, uint32_t n, const osm_physp_t *port, uint32_t at)
{
	const struct fabric_file *f = &w->file;

	f->port_guid[at] = cl_ntoh64(osm_physp_get_port_guid(port));
	f->port_node[at] = n;
	f->port_number[at] = port->port_num;
	if (!port->port_num || !is_switch(w->node[n])) {
		f->port_lid[at] = cl_ntoh16(osm_physp_get_base_lid(port));
		f->port_lmc[at] = ib_port_info_get_lmc(&port->port_info);
	}
	f->port_state[at] = ib_port_info_get_port_state(&port->port_info);
	if (!osm_physp_is_healthy(port))
		f->port_state[at] |= FABRIC_UNHEALTHY;
	f->port_width[at] = lanes_of(port);
	f->port_speed[at] = speed_of(w->node[n], port);
}

/* The index in the file of the port at the other end; UINT32_MAX if its node is unknown. */
static uint32_t far_end(const struct walk *w, const osm_physp_t *port)
{
	const osm_physp_t *far = port->p_remote_physp;
	osm_node_t *const *node = bsearch(&far->p_node, w->node, w->file.nodes, sizeof(*w->node), by_guid);

	return node ? w->port[w->first[node - w->node] + far->port_num] : UINT32_MAX;
}

static void fill(struct walk *w)
{
	struct fabric_file *f = &w->file;
	uint8_t *name = f->names;
	uint32_t links = 0;
	size_t length;

	for (uint32_t n = 0; n < f->nodes; n++) {
		osm_node_t *node = w->node[n];
		const char *text = name_of(node, &length);

		f->node_guid[n] = cl_ntoh64(osm_node_get_node_guid(node));
		f->node_type[n] = osm_node_get_type(node);
		f->node_ports[n] = node->node_info.num_ports;
		f->name_length[n] = (uint8_t)length;
		memcpy(name, text, length);
		name += length;
		for (unsigned p = 0; p < osm_node_get_num_physp(node); p++) {
			const osm_physp_t *port = port_of(node, p);
			const uint32_t here = w->port[w->first[n] + p];

			if (!port)
				continue;
			fill_port(w, n, port, here);
			if (has_cable(port) && far_end(w, port) > here && links < f->links) {
				f->link_from[links] = here;
				f->link_to[links++] = far_end(w, port);
			}
		}
	}
}

/* The caller holds OpenSM's lock, shared. Fills in `w->file`; otherwise false, and why. */
static bool copy(struct walk *w, struct reason *why)
{
	const bool good = list_nodes(w) && count(w);

	if (good)
		fill(w);
	else
		REASON(why, "no memory for the fabric");
	free(w->node);
	free(w->first);
	free(w->port);
	return good;
}

/* The same. Sets `wait` if the fabric is not known yet. */
static bool is_known(struct bridge *b, bool *wait, struct reason *why)
{
	const osm_subn_t *subn = &b->osm->subn;
	bool sweeping, stopping;

	pthread_mutex_lock(&b->shared.lock);
	sweeping = b->shared.phase == SWEEPING;
	stopping = b->shared.stopping;
	pthread_mutex_unlock(&b->shared.lock);
	*wait = !stopping && (subn->sm_state == IB_SMINFO_STATE_MASTER || subn->sm_state == IB_SMINFO_STATE_DISCOVERING);
	if (stopping)
		REASON(why, "OpenSM is shutting down");
	else if (!*wait)
		REASON_OF(why, "not-master", "this OpenSM is not the master and does not know the fabric; ask the master");
	else if (sweeping || subn->sm_state != IB_SMINFO_STATE_MASTER || !cl_qmap_count(&subn->sw_guid_tbl))
		REASON_OF(why, "busy", cl_qmap_count(&subn->sw_guid_tbl) ?
			  "OpenSM's sweep is under way, and it has not discovered the whole fabric yet; ask again" :
			  "OpenSM has discovered no switch yet; ask again");
	else
		return true;
	return false;
}

static bool wait_and_copy(struct bridge *b, struct walk *w, struct reason *why)
{
	const struct timespec pause = {.tv_nsec = PAUSE_NS};
	const double end = clock_seconds() + PATIENCE_SECONDS;

	for (;;) {
		const enum held held = osm_try_lock(b);
		bool known = false, good = false, wait = true;

		if (held == BUSY) {
			REASON_OF(why, "busy", "OpenSM has been busy with its routes for %d s; ask again", PATIENCE_SECONDS);
		} else {
			known = is_known(b, &wait, why);
			good = known && copy(w, why);
			osm_unlock(b, held);
		}
		if (known || !wait || clock_seconds() >= end)
			return good;
		nanosleep(&pause, NULL);
	}
}

bool fabric_write(struct bridge *b, char more[MORE_SIZE], struct reason *why)
{
	struct walk w = {.subn = &b->osm->subn};
	bool good;

	if (!wait_and_copy(b, &w, why))
		return false;
	w.file.made_at = (uint64_t)time(NULL);
	fabric_file_seal(&w.file);
	good = fabric_file_write(&w.file, b->options.fabric_path, why);
	snprintf(more, MORE_SIZE, "\"digest\":\"%016" PRIx64 "\"", w.file.digest);
	fabric_file_free(&w.file);
	return good;
}
