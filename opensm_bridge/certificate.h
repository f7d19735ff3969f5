/*
 * The certificate of a routes file: a number per channel and lane, which rises from channel to channel along every path of
 * a packet between hosts. So no such path has a loop, and no credit loop can form: a packet that holds a channel waits only
 * for channels with larger numbers. FORMAT.md says what is covered.
 */
#pragma once
#include <stdbool.h>

#include "routes_file.h"

/* Checks all paths of a file that has numbers. */
bool certificate_holds(const struct routes *r, struct reason *why);
