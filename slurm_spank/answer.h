/* The agent's answer: one line of JSON. */
#ifndef SAR_ANSWER_H
#define SAR_ANSWER_H
#include <stdbool.h>

#include "environment.h"

#define ANSWER_SIZE 4001

struct answer {
	bool ok;
	char error[200];
	struct environment env; /* variables that are not fit are left out */
};

/* False if `json` is not an object as PROTOCOL.md has it. */
bool answer_read(struct answer *answer, const char *json);

#endif
