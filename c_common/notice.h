/*
 * The five-phase update's notices as words and bytes (../libsar_migrate/PROTOCOL.md), free of
 * OpenSM's types: the plugin writes them, libsar_migrate reads them, both from this source.
 */
#ifndef SAR_NOTICE_H
#define SAR_NOTICE_H
#include <stdbool.h>
#include <stdint.h>

#include "reason.h"

#define NOTICE_DETAILS_SIZE 54 /* of every notice */
#define NOTICE_OURS 30	       /* where in the details ours begin; all before it is zero */
#define TRAP_UNPATH 68
#define TRAP_REPATH 69

enum notice_kind {
	NOTICE_UNPATH = 1,
	NOTICE_REPATH = 2,
};

struct notice {
	enum notice_kind kind;
	uint64_t update, generation;
};

/* "unpath UPDATE GENERATION" or "repath …", decimal; false and why for anything else. */
bool notice_parse(struct notice *notice, const char *words, struct reason *why);
uint16_t notice_trap(const struct notice *notice);
void notice_pack(const struct notice *notice, uint8_t details[NOTICE_DETAILS_SIZE]);
/* False if trap and details are not a notice of ours. */
bool notice_unpack(struct notice *notice, uint16_t trap, const uint8_t details[NOTICE_DETAILS_SIZE]);

#endif
