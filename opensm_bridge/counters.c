/*
 * Keeps what OpenSM's PerfMgr counts, and writes it to a file for the agent. PerfMgr reports from its own threads, with the lock
 * of its database held, so nothing but the mutex of this file is taken; its holders take no other lock.
 */
#include <stdlib.h>
#include <string.h>

#include "bridge.h"
#include "clock.h"
#include "port_counters.h"
#include "write_file.h"

bool counters_are_read(const struct bridge *b)
{
#ifdef ENABLE_OSM_PERF_MGR
	return b->osm->subn.opt.perfmgr && b->osm->perfmgr.state == PERFMGR_STATE_ENABLED;
#else
	(void)b;
	return false;
#endif
}

static uint32_t sweep_seconds(const struct bridge *b)
{
#ifdef ENABLE_OSM_PERF_MGR
	return b->osm->perfmgr.sweep_time_s; /* the console may have changed it */
#else
	(void)b;
	return 0;
#endif
}

void counters_note_data(struct bridge *b, const osm_epi_dc_event_t *event)
{
	const struct counted_data data = {
		.guid = event->port_id.node_guid,
		.port = event->port_id.port_num,
		.sent = event->xmit_data,
		.received = event->rcv_data,
		.sent_packets = event->xmit_pkts,
		.received_packets = event->rcv_pkts,
		.seconds = event->time_diff_s,
	};

	pthread_mutex_lock(&b->counting);
	b->counters.sweep_seconds = sweep_seconds(b);
	counters_add_data(&b->counters, &data, (uint64_t)clock_ms());
	pthread_mutex_unlock(&b->counting);
}

void counters_note_waits(struct bridge *b, const osm_epi_pe_event_t *event)
{
	pthread_mutex_lock(&b->counting);
	b->counters.sweep_seconds = sweep_seconds(b);
	counters_add_waits(&b->counters, event->port_id.node_guid, event->port_id.port_num, event->xmit_wait,
			   event->time_diff_s, (uint64_t)clock_ms());
	pthread_mutex_unlock(&b->counting);
}

uint32_t counters_sweep(struct bridge *b)
{
	uint32_t sweep;

	pthread_mutex_lock(&b->counting);
	sweep = b->counters.sweep;
	pthread_mutex_unlock(&b->counting);
	return sweep;
}

bool counters_write(struct bridge *b, char more[MORE_SIZE], struct reason *why)
{
	uint8_t *image;
	size_t size;
	bool good;

	if (!counters_are_read(b))
		return REASON_OF(why, "perfmgr-off", "OpenSM's PerfMgr is off, so no port is counted; set perfmgr TRUE and "
			  "perfmgr_sweep_time_s in opensm.conf, and restart OpenSM"), false;
	pthread_mutex_lock(&b->counting);
	image = counters_image(&b->counters, (uint64_t)clock_ms(), (uint64_t)clock_ms_of(CLOCK_REALTIME), &size);
	snprintf(more, MORE_SIZE, "\"ports\":%zu,\"sweep\":%u", (size - COUNTERS_HEADER_SIZE) / COUNTERS_PORT_SIZE, b->counters.sweep);
	pthread_mutex_unlock(&b->counting);
	if (!image)
		REFUSE("no memory for the counters");
	good = write_file(b->options.counters_path, image, size, why);
	free(image);
	return good;
}
