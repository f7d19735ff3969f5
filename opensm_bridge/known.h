/*
 * The known contents of each switch's forwarding table: for each LID, the entry that was sent last, and the entry that the
 * switch may have instead. The two are equal if the switch has confirmed the entry. ENTRY_UNKNOWN means that there is more than
 * one possibility, or that nothing is known. Besides, the entries by which packets that are still on their way may have come: they
 * were replaced a short time ago. Without OpenSM's types; tables.c fills it in.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "live.h"

#define ENTRY_UNKNOWN 254
#define ENTRY_NO_ROUTE 255
#define KNOWN_BLOCK 64 /* LIDs whose entries are sent and confirmed together */
#define OLDERS 3 /* entries of one LID that are known to have been replaced a short time ago; one more makes ENTRY_UNKNOWN */

struct known_switch {
	uint64_t guid;
	uint8_t *sent, *had; /* by LID; the three are one allocation */
	uint8_t *older;	     /* [lids][OLDERS]; ENTRY_NO_ROUTE from the first place on that none has */
	uint64_t reset_before; /* number of a routing: results of earlier ones are not believed; see tables.c */
};

struct known {
	struct known_switch *sw; /* ascending GUIDs */
	uint32_t switches, lids; /* `lids` is a multiple of KNOWN_BLOCK, and never shrinks */
	uint64_t *end; /* by LID: the GUID of the switch where its last routes end; 0: none, or packets to it were dropped since */
	uint32_t last; /* the highest LID that may be in use; entries of higher ones are never sent */
	bool begun;    /* something was sent to some switch, or confirmed by it */
	bool ages;     /* some entry has an older one */
};

/* Makes room for these switches (ascending GUIDs) and LIDs. Nothing is known of new switches; others are removed. False
 * without memory; then nothing is known of any switch. */
bool known_resize(struct known *k, const uint64_t *guids, uint32_t switches, uint32_t lids);
void known_free(struct known *k);
/* NULL if it is not among them. */
struct known_switch *known_find(const struct known *k, uint64_t guid);

/* `count` entries from LID `at` on were confirmed; were sent and are not confirmed yet; were lost, as after a reset. */
void known_confirmed(struct known *k, struct known_switch *sw, uint32_t at, const uint8_t *entry, uint32_t count);
void known_sent(struct known_switch *sw, uint32_t at, const uint8_t *entry, uint32_t count);
void known_lost(struct known_switch *sw, uint32_t at, uint32_t count);

/* Packets that came by older entries are gone. */
void known_forget_older(struct known *k);
/* Whether packets can meet no entries but those that were sent last: at one switch; at any. */
bool known_is_settled(const struct known *k, uint32_t s);
bool known_all_settled(const struct known *k);
/* Whether live switch `s`, which is that of `k` at this place, has just come up: nothing is known of it, and all of its cables
 * are fresh. */
bool known_is_lost(const struct known *k, const struct live *live, uint32_t s);

/* Counts the switches and the blocks that have an unconfirmed entry. */
void known_count(const struct known *k, uint32_t *switches, uint32_t *blocks);
/* A hash of all entries of LIDs in use, and of which port has which LID; 0 without memory. `seed` is a hash of everything
 * else that matters. */
uint64_t known_digest(const struct known *k, const struct live *live, uint64_t seed);
