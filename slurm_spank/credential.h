/* Who speaks: a munge credential around the payload. */
#ifndef SAR_CREDENTIAL_H
#define SAR_CREDENTIAL_H
#include <stddef.h>
#include <stdint.h>

#include "reason.h"

/* For whom a credential is: nobody else's munge decodes it, so who listens in the agent's place learns
 * nothing, and has nothing to show to others. */
#define READER_ANY (-1)

/* A string on the heap, without a line end; NULL and why if munge is not here or does not answer.
 * `socket` is munged's, "" for its default; `reader` the uid that may decode it, or READER_ANY. */
char *credential_make(const char *socket, const void *payload, size_t length, int64_t reader, struct reason *why);

/* The uid of the user `name`, which may be a number; READER_ANY for "", and for a name that is not known
 * here. */
int64_t credential_reader(const char *name);

#endif
