/* The magic bytes mark a trap 68 or 69 as ours; the standard's own traps of these numbers carry path records. */
#include "notice.h"

#include <string.h>

#include "number.h"

static const char magic[4] = {'S', 'A', 'R', '1'};

bool notice_parse(struct notice *notice, const char *arguments, struct reason *why)
{
	const bool unpath = !strncmp(arguments, "unpath ", 7), repath = !strncmp(arguments, "repath ", 7);
	const char *at = unpath || repath ? number_parse(arguments + 7, &notice->update) : NULL;

	at = at && *at == ' ' ? number_parse(at + 1, &notice->generation) : NULL;
	if (!at || *at || !notice->update)
		REFUSE("notice needs unpath or repath, the update's number above 0, and the generation");
	notice->kind = unpath ? NOTICE_UNPATH : NOTICE_REPATH;
	return true;
}

uint16_t notice_trap(const struct notice *notice)
{
	return notice->kind == NOTICE_UNPATH ? TRAP_UNPATH : TRAP_REPATH;
}

static void put(uint8_t *to, uint64_t value)
{
	for (int byte = 7; byte >= 0; byte--, value >>= 8)
		to[byte] = (uint8_t)value;
}

static uint64_t get(const uint8_t *from)
{
	uint64_t value = 0;

	for (int byte = 0; byte < 8; byte++)
		value = value << 8 | from[byte];
	return value;
}

void notice_pack(const struct notice *notice, uint8_t details[NOTICE_DETAILS_SIZE])
{
	uint8_t *ours = details + NOTICE_OURS;

	memset(details, 0, NOTICE_DETAILS_SIZE);
	memcpy(ours, magic, sizeof(magic));
	ours[4] = (uint8_t)notice->kind;
	put(ours + 8, notice->update);
	put(ours + 16, notice->generation);
}

bool notice_unpack(struct notice *notice, uint16_t trap, const uint8_t details[NOTICE_DETAILS_SIZE])
{
	const uint8_t *ours = details + NOTICE_OURS;

	if (memcmp(ours, magic, sizeof(magic)) || (ours[4] != NOTICE_UNPATH && ours[4] != NOTICE_REPATH))
		return false;
	*notice = (struct notice){ours[4], get(ours + 8), get(ours + 16)};
	return notice_trap(notice) == trap && notice->update;
}
