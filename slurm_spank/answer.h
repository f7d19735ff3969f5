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
	unsigned wait;	/* milliseconds after which to ask again; 0: this is the last word */
	char note[200]; /* why there is no routing key */
	char state[16]; /* of a key: waiting, in_force, none, done */
	unsigned offset, own, total;
	struct environment env; /* variables that are not fit are left out */
	/* To a subscriber of updates in phases (libsar_migrate/PROTOCOL.md); 0 and "" are not said. */
	unsigned lease; /* milliseconds */
	char phase[8];
	uint64_t update, generation;
};

/* False if `json` is not an object as PROTOCOL.md has it. */
bool answer_read(struct answer *answer, const char *json);

#endif
