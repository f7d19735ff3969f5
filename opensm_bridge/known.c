/*
 * The known contents of the switches' tables; see known.h.
 *
 * **Weak spot:** a switch that has answered a set is believed to forward by that entry, and by no earlier one. A set that was not
 * answered is forgotten once a later one is. If such a MAD still arrived after the later one, the switch would have an entry
 * that nobody counts with, until OpenSM sends the block again. Nothing in 3.3.23 looks for that; a switch's own queue keeps the
 * order, but two sets may take different paths.
 */
#include "known.h"

#include <stdlib.h>
#include <string.h>

#include "guid.h"

void known_free(struct known *k)
{
	for (uint32_t s = 0; s < k->switches; s++)
		free(k->sw[s].sent);
	free(k->sw);
	free(k->end);
	*k = (struct known){.sw = NULL};
}

struct known_switch *known_find(const struct known *k, uint64_t guid)
{
	return k->switches ? bsearch(&guid, k->sw, k->switches, sizeof(*k->sw), guid_order) : NULL;
}

static bool has_these(const struct known *k, const uint64_t *guids, uint32_t switches, uint32_t lids)
{
	bool same = k->end && k->switches == switches && k->lids == lids;

	for (uint32_t s = 0; same && s < switches; s++)
		same = k->sw[s].guid == guids[s];
	return same;
}

/* A switch of the resized `k`, with what was known of it. */
static bool take_over(struct known *k, uint32_t s, const struct known *old, uint64_t guid)
{
	const struct known_switch *was = known_find(old, guid);
	uint8_t *room = malloc((size_t)(2 + OLDERS) * k->lids);

	if (!room)
		return false;
	k->sw[s] = (struct known_switch){.guid = guid, .sent = room, .had = room + k->lids, .older = room + 2 * k->lids,
					 .reset_before = was ? was->reset_before : 0};
	known_lost(&k->sw[s], 0, k->lids);
	if (was) {
		memcpy(k->sw[s].sent, was->sent, old->lids);
		memcpy(k->sw[s].had, was->had, old->lids);
		memcpy(k->sw[s].older, was->older, (size_t)OLDERS * old->lids);
	}
	return true;
}

bool known_resize(struct known *k, const uint64_t *guids, uint32_t switches, uint32_t lids)
{
	struct known resized = *k;
	bool good;

	lids = lids ? (lids + KNOWN_BLOCK - 1) / KNOWN_BLOCK * KNOWN_BLOCK : KNOWN_BLOCK;
	resized.lids = lids > k->lids ? lids : k->lids;
	if (has_these(k, guids, switches, resized.lids))
		return true;
	resized.switches = switches;
	resized.sw = calloc(switches + 1, sizeof(*resized.sw));
	resized.end = calloc(resized.lids, sizeof(*resized.end));
	good = resized.sw && resized.end;
	if (!resized.sw)
		resized.switches = 0;
	if (good && k->end)
		memcpy(resized.end, k->end, k->lids * sizeof(*k->end));
	for (uint32_t s = 0; good && s < switches; s++)
		good = take_over(&resized, s, k, guids[s]);
	known_free(k);
	*k = resized;
	if (!good)
		known_free(k);
	return good;
}

/* Packets may have left by these entries of a LID; those that leave now do so by `now`. */
static void note_older(struct known *k, struct known_switch *sw, uint32_t lid, uint8_t now)
{
	uint8_t *older = sw->older + (size_t)OLDERS * lid, left[OLDERS + 2] = {[OLDERS] = sw->had[lid], sw->sent[lid]};
	size_t count = 0;

	memcpy(left, older, OLDERS);
	for (size_t i = 0; i < sizeof(left); i++) {
		if (left[i] == ENTRY_NO_ROUTE || left[i] == now || memchr(older, left[i], count))
			continue;
		if (count < OLDERS)
			older[count++] = left[i];
		else
			older[OLDERS - 1] = ENTRY_UNKNOWN;
	}
	memset(older + count, ENTRY_NO_ROUTE, OLDERS - count);
	k->ages = k->ages || count;
}

void known_confirmed(struct known *k, struct known_switch *sw, uint32_t at, const uint8_t *entry, uint32_t count)
{
	if (memcmp(sw->sent + at, entry, count) || memcmp(sw->had + at, entry, count))
		for (uint32_t i = at; i < at + count; i++)
			/* What a switch had when it came up has led no packet anywhere: its cables carried none. **Weak spot:** the
			 * same is assumed of what switches had when OpenSM started, which it does not know. */
			if (sw->sent[i] != ENTRY_NO_ROUTE || sw->had[i] != ENTRY_UNKNOWN)
				note_older(k, sw, i, entry[i - at]);
	memcpy(sw->sent + at, entry, count);
	memcpy(sw->had + at, entry, count);
	k->begun = true;
}

void known_lost(struct known_switch *sw, uint32_t at, uint32_t count)
{
	memset(sw->sent + at, ENTRY_NO_ROUTE, count);
	memset(sw->had + at, ENTRY_UNKNOWN, count);
	memset(sw->older + (size_t)OLDERS * at, ENTRY_NO_ROUTE, (size_t)OLDERS * count);
}

void known_forget_older(struct known *k)
{
	for (uint32_t s = 0; k->ages && s < k->switches; s++)
		memset(k->sw[s].older, ENTRY_NO_ROUTE, (size_t)OLDERS * k->lids);
	k->ages = false;
}

bool known_is_settled(const struct known *k, uint32_t s)
{
	const uint32_t lids = k->last < k->lids ? k->last + 1 : k->lids;
	const uint8_t *older = k->sw[s].older;

	return !memcmp(k->sw[s].sent, k->sw[s].had, lids) &&
	       (!k->ages || (older[0] == ENTRY_NO_ROUTE && !memcmp(older, older + 1, (size_t)OLDERS * lids - 1)));
}

bool known_all_settled(const struct known *k)
{
	for (uint32_t s = 0; s < k->switches; s++)
		if (!known_is_settled(k, s))
			return false;
	return true;
}

bool known_is_lost(const struct known *k, const struct live *live, uint32_t s)
{
	const struct live_switch *sw = &live->sw[s];
	bool fresh = k->sw[s].sent[0] == ENTRY_NO_ROUTE && k->sw[s].had[0] == ENTRY_UNKNOWN &&
		     !memcmp(k->sw[s].had, k->sw[s].had + 1, k->lids - 1);

	for (unsigned p = 1; p <= sw->ports; p++)
		fresh = fresh && (live->peer[sw->first_port + p] == NO_PEER ||
				  (live->fresh && live->fresh[sw->first_port + p]));
	return fresh;
}

/* Two possible entries and a third make ENTRY_UNKNOWN; sending the same entry again changes nothing. */
void known_sent(struct known_switch *sw, uint32_t at, const uint8_t *entry, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		uint8_t *sent = &sw->sent[at + i], *had = &sw->had[at + i];

		if (*had == ENTRY_UNKNOWN || *sent == entry[i])
			;
		else if (*had == *sent || *had == entry[i])
			*had = *sent;
		else
			*had = ENTRY_UNKNOWN;
		*sent = entry[i];
	}
}

void known_count(const struct known *k, uint32_t *switches, uint32_t *blocks)
{
	*switches = *blocks = 0;
	for (uint32_t s = 0; s < k->switches; s++) {
		const uint32_t before = *blocks;

		for (uint32_t at = 0; at <= k->last && at < k->lids; at += KNOWN_BLOCK) {
			const uint32_t room = k->last + 1 - at;

			*blocks += memcmp(k->sw[s].sent + at, k->sw[s].had + at,
					  room < KNOWN_BLOCK ? room : KNOWN_BLOCK) != 0;
		}
		*switches += *blocks != before;
	}
}

static uint64_t word_at(const uint8_t *bytes, uint32_t at)
{
	uint64_t word;

	memcpy(&word, bytes + at, sizeof(word));
	return word;
}

/* Eight entries at a time; those of LIDs that are not in use count as 0. `lids` is a multiple of eight. */
static uint64_t digest_rows(const struct known *k, const uint8_t *used, uint64_t hash)
{
	for (uint32_t s = 0; s < k->switches; s++) {
		const struct known_switch *sw = &k->sw[s];

		hash = hash_mix(hash, sw->guid);
		for (uint32_t lid = 0; lid < k->lids; lid += sizeof(uint64_t)) {
			const uint64_t mask = word_at(used, lid);

			if (mask)
				hash = hash_mix(hash_mix(hash, word_at(sw->had, lid) & mask), word_at(sw->sent, lid) & mask);
		}
	}
	return hash;
}

uint64_t known_digest(const struct known *k, const struct live *live, uint64_t seed)
{
	uint8_t *used = calloc(k->lids + 1, sizeof(*used));
	uint64_t ends = 0, hash = 0;

	/* A sum, because the order of terminals must not matter. */
	for (uint32_t d = 0; used && d < live_destinations(live); d++) {
		const struct live_destination to = live_destination(live, d);

		for (unsigned lid = to.low; lid && lid <= to.high && lid < k->lids; lid++)
			used[lid] = 0xff;
		ends += hash_mix(hash_mix(to.guid, to.low), to.high);
	}
	if (used)
		hash = digest_rows(k, used, hash_mix(seed, ends));
	free(used);
	return hash;
}
