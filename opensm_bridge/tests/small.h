/*
 * A small fabric and routes for it: three switches in a triangle, two terminals on each of the
 * first two. Switch `s` has terminals at ports 1 and 2 and its links at port 3 (to the next switch)
 * and port 4 (to the previous one).
 */
#ifndef SAR_TEST_SMALL_H
#define SAR_TEST_SMALL_H
#include "../live.h"
#include "../routes_image.h"

#define SMALL_SWITCHES 3
#define SMALL_TERMINALS 4

static inline uint8_t *small_entry(struct routes *r, unsigned offset, uint32_t s, uint32_t d)
{
	return ROUTES_FILL(uint8_t, routes_row(r, r->forwarding, offset, s)) + d;
}

static inline void small_far_ends(struct routes *r)
{
	memset(ROUTES_FILL(uint32_t, r->far_ends), 0xff, SMALL_SWITCHES * 5 * 4);
	for (uint32_t s = 0; s < SMALL_SWITCHES; s++) {
		ROUTES_FILL(uint32_t, r->far_ends)[s * 5 + 3] = (s + 1) % 3 << 8 | 4;
		ROUTES_FILL(uint32_t, r->far_ends)[s * 5 + 4] = (s + 2) % 3 << 8 | 3;
	}
}

static inline struct routes *small_routes(unsigned offsets, unsigned lanes)
{
	const struct routes sizes = {.generation = 7, .made_at = 1, .switches = SMALL_SWITCHES,
				     .terminals = SMALL_TERMINALS, .offsets = offsets,
				     .lanes = lanes, .wide = 5, .engine = "sar"};
	struct routes *r = routes_blank(&sizes);

	if (!r)
		abort();
	for (uint32_t s = 0; s < SMALL_SWITCHES; s++) {
		ROUTES_FILL(uint64_t, r->switch_guid)[s] = 0x100 + s;
		ROUTES_FILL(uint8_t, r->switch_ports)[s] = 4;
		ROUTES_FILL(uint8_t, r->senders)[s] = s < 2; /* the third has no hosts */
	}
	small_far_ends(r);
	for (uint32_t t = 0; t < SMALL_TERMINALS; t++) {
		ROUTES_FILL(uint64_t, r->terminal_guid)[t] = 0x200 + t;
		ROUTES_FILL(uint32_t, r->terminal_leaf)[t] = t / 2;
	}
	for (unsigned o = 0; o < offsets; o++)
		for (uint32_t s = 0; s < SMALL_SWITCHES; s++)
			for (uint32_t d = 0; d < r->columns; d++) {
				const uint32_t at = d < SMALL_TERMINALS ? d / 2 : d - SMALL_TERMINALS;
				const uint8_t last = d < SMALL_TERMINALS ? (uint8_t)(d % 2 + 1) : 0;

				*small_entry(r, o, s, d) =
					at == s ? last : at == (s + 1) % 3 ? 3 : 4;
			}
	for (unsigned sl = 0; lanes > 1 && sl < 16; sl++)
		ROUTES_FILL(uint8_t, r->sl_to_vl)[sl] = (uint8_t)(sl % lanes);
	routes_seal(r);
	return r;
}

/* A copy of `plain`, which it drops, in a file with these flags and lanes; what `plain` does not have is 0. */
static inline struct routes *small_copy(struct routes *plain, unsigned flags, unsigned lanes)
{
	struct routes sizes = *plain, *r;
	struct routes_layout l;

	sizes.flags = flags;
	sizes.lanes = lanes;
	r = routes_blank(&sizes);
	if (!r)
		abort();
	routes_lay_out(plain, &l);
	for (unsigned i = 0; i < l.sections; i++)
		if (r->section[l.section[i].id])
			memcpy(ROUTES_FILL(void, r->section[l.section[i].id]), plain->section[l.section[i].id], l.section[i].length);
	routes_drop(plain);
	return r;
}

/* Two hop-by-hop lanes: packets from port 4 to port 3 of a switch use the second one. */
static inline struct routes *small_hop_routes(unsigned offsets)
{
	struct routes *r = small_copy(small_routes(offsets, 1), ROUTES_HOPS, 2);

	for (uint32_t s = 0; s < SMALL_SWITCHES; s++)
		ROUTES_FILL(uint8_t, r->hop_lanes)[(s * 5 + 4) * 5 + 3] = 1;
	routes_seal(r);
	return r;
}

/* With numbers: 1 for each channel, as no path has two of them. */
static inline struct routes *small_numbered(unsigned offsets, unsigned lanes)
{
	struct routes *r = small_copy(small_routes(offsets, lanes), ROUTES_NUMBERS, lanes);

	for (uint32_t at = 0; at < SMALL_SWITCHES * 5; at++) {
		ROUTES_FILL(uint32_t, r->loads)[at] = at % 5 > 2 ? ROUTES_MOST_LOAD : 0;
		for (unsigned lane = 0; lane < lanes; lane++)
			ROUTES_FILL(uint32_t, r->numbers)[lane * SMALL_SWITCHES * 5 + at] = at % 5 > 2;
	}
	routes_seal(r);
	return r;
}

struct small {
	struct live_switch sw[SMALL_SWITCHES];
	struct live_terminal end[SMALL_TERMINALS + 1];
	uint32_t peer[SMALL_SWITCHES * 5];
	uint8_t peer_port[SMALL_SWITCHES * 5];
	struct live live;
};

static inline void small_fabric(struct small *f)
{
	memset(f, 0, sizeof(*f));
	for (uint32_t s = 0; s < SMALL_SWITCHES; s++) {
		f->sw[s] = (struct live_switch){.guid = 0x100 + s, .name = "switch", .ports = 4,
						.first_port = 5 * s, .lid_low = (uint16_t)(s + 1),
						.lid_high = (uint16_t)(s + 1)};
		for (int port = 0; port < 5; port++)
			f->peer[5 * s + (unsigned)port] = NO_PEER;
		f->peer[5 * s + 3] = (s + 1) % 3;
		f->peer[5 * s + 4] = (s + 2) % 3;
		f->peer_port[5 * s + 3] = 4;
		f->peer_port[5 * s + 4] = 3;
	}
	for (uint32_t t = 0; t < SMALL_TERMINALS; t++)
		f->end[t] = (struct live_terminal){.guid = 0x200 + t, .leaf = t / 2,
						   .leaf_port = (uint8_t)(t % 2 + 1),
						   .lid_low = (uint16_t)(10 + t),
						   .lid_high = (uint16_t)(10 + t)};
	f->live = (struct live){.switches = SMALL_SWITCHES, .terminals = SMALL_TERMINALS,
				.sw = f->sw, .end = f->end, .peer = f->peer, .lids_per_port = 1,
				.data_lanes = 8, .qos = true, .sl2vl = true,
				.peer_port = f->peer_port};
}

/* The third switch is the first in the order of the live fabric, as its GUID is the lowest. */
static inline void small_rotate(struct small *f)
{
	const struct small old = *f;

	for (uint32_t s = 0; s < SMALL_SWITCHES; s++) {
		const uint32_t to = (s + 1) % SMALL_SWITCHES;

		f->sw[to] = old.sw[s];
		f->sw[to].first_port = 5 * to;
		for (uint32_t p = 0; p < 5; p++) {
			const uint32_t peer = old.peer[5 * s + p];

			f->peer[5 * to + p] = peer == NO_PEER ? NO_PEER : (peer + 1) % SMALL_SWITCHES;
			f->peer_port[5 * to + p] = old.peer_port[5 * s + p];
		}
	}
	for (uint32_t t = 0; t < f->live.terminals; t++)
		f->end[t].leaf = (old.end[t].leaf + 1) % SMALL_SWITCHES;
}

#endif
