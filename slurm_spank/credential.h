/* Who speaks: a munge credential around the payload. */
#ifndef SAR_CREDENTIAL_H
#define SAR_CREDENTIAL_H
#include <stddef.h>

#include "reason.h"

/* A string on the heap, without a line end; NULL and why if munge is not here or does not answer.
 * `socket` is munged's, "" for its default. */
char *credential_make(const char *socket, const void *payload, size_t length, struct reason *why);

#endif
