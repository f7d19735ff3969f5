/*
 * The notices of five-phase updates as text and as bytes (libs/migrate/PROTOCOL.md), without OpenSM's types. The OpenSM
 * plugin writes them and libsar_migrate reads them, both with this code.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "reason.h"

#define NOTICE_DETAILS_SIZE 54 /* of every notice */
#define NOTICE_OURS 30	       /* offset of our data in the details; the bytes before it are zero */
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

/* Parses "unpath UPDATE GENERATION" or "repath UPDATE GENERATION"; false and `why` for anything else. */
bool notice_parse(struct notice *notice, const char *arguments, struct reason *why);
uint16_t notice_trap(const struct notice *notice);
void notice_pack(const struct notice *notice, uint8_t details[NOTICE_DETAILS_SIZE]);
/* False if trap and details are not one of our notices. */
bool notice_unpack(struct notice *notice, uint16_t trap, const uint8_t details[NOTICE_DETAILS_SIZE]);
