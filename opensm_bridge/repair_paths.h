/* The paths of one column: which switches are concerned, and what their entries lead to. Chooses nothing. */
#pragma once
#include "repair_state.h"

/* Before the first column: all switches that are up lead to the end, as far as is known. */
void repair_begin(struct repair_state *x);

/* Finds the members: the suspects in this column, and those whose path leads there. Sets `passed`, `arrive` and `low`. */
void repair_find_members(struct repair_state *x);

/* Sets `reach` of all members to LEADS or ENDLESS, by their new entries. */
void repair_follow(struct repair_state *x);

/*
 * The number of the channel from `s` by `port` if a packet may take it: numbers rise from there to the end, by the new entries
 * and by all in force that it may meet instead; else 0. repair_rising(): the same for the new entry of `s`, which leads to the end.
 */
uint32_t repair_rising_by(struct repair_state *x, uint32_t s, uint8_t port);
uint32_t repair_rising(struct repair_state *x, uint32_t s);
