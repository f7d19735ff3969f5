/* A munge credential around a payload: proves to the agent which user sent it. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "reason.h"

/* A credential names the user who may decode it. A process that listens in the agent's place can then neither read
 * the payload nor pass the credential on. READER_ANY lifts that restriction. */
#define READER_ANY (-1)

/* Returns a string on the heap, without a line end; NULL and `why` if munge is missing or does not answer.
 * `socket` is that of munged, "" for its default; `reader` is the uid that may decode it, or READER_ANY. */
char *credential_make(const char *socket, const void *payload, size_t length, int64_t reader, struct reason *why);

/* The uid of the user `name`, which may be a number; READER_ANY for "" and for an unknown name. */
int64_t credential_reader(const char *name);
