/*
 * What each switch is known to have: per LID the entry that was sent last and the one that it may
 * have instead. Both are the same where the switch has confirmed; KNOWN_NOT stands for more than one
 * possibility and for none that is known. Free of OpenSM's types; tables.c fills it.
 */
#ifndef SAR_KNOWN_H
#define SAR_KNOWN_H
#include <stdbool.h>
#include <stdint.h>

#include "live.h"

#define KNOWN_NOT 254
#define KNOWN_NO_ROUTE 255
#define KNOWN_BLOCK 64 /* LIDs that are sent and confirmed together */

struct known_switch {
	uint64_t guid;
	uint8_t *sent, *had; /* by LID */
	uint64_t reset_before; /* routing: of those before it nothing is believed; see tables.c */
};

struct known {
	struct known_switch *sw; /* ascending GUIDs */
	uint32_t switches, lids; /* `lids`: a multiple of KNOWN_BLOCK; only ever grows */
};

/* Room for these switches (ascending GUIDs) and LIDs, with nothing known of new ones; switches that
 * are not among them are forgotten. False without memory: then nothing is known of any. */
bool known_resize(struct known *k, const uint64_t *guids, uint32_t switches, uint32_t lids);
void known_free(struct known *k);

/* `count` entries from LID `at` on: confirmed; sent, and not confirmed; or of a switch that was
 * reset. */
void known_confirmed(struct known_switch *sw, uint32_t at, const uint8_t *entry, uint32_t count);
void known_sent(struct known_switch *sw, uint32_t at, const uint8_t *entry, uint32_t count);
void known_lost(struct known_switch *sw, uint32_t at, uint32_t count);

/* Switches, and blocks, with an entry that is not confirmed, of LIDs up to `last`. */
void known_count(const struct known *k, uint32_t last, uint32_t *switches, uint32_t *blocks);
/* Names all entries of LIDs in use, and which port has which LID; 0 without memory. `seed` is for
 * what else there is. */
uint64_t known_digest(const struct known *k, const struct live *live, uint64_t seed);
uint64_t known_mixed(uint64_t hash, uint64_t value);

#endif
