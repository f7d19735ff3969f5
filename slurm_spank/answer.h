/* The agent's answer: one line of JSON. */
#ifndef SAR_ANSWER_H
#define SAR_ANSWER_H
#include <stdbool.h>
#include <stdint.h>

#include "environment.h"

#define ANSWER_SIZE 4001

struct answer {
	bool ok;
	char error[200];
	struct environment env; /* variables that are not fit are left out */
	/* To a subscriber of updates in phases (libsar_migrate/PROTOCOL.md); 0 and "" are not said. */
	unsigned lease; /* milliseconds */
	char phase[8];
	uint64_t update, generation;
};

/* False if `json` is not an object as PROTOCOL.md has it. */
bool answer_read(struct answer *answer, const char *json);

#endif
