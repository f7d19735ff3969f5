/* The agent's answer: lines `key value` (slurm_spank/PROTOCOL.md, KEYS.md, libs/migrate/PROTOCOL.md). */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "environment.h"

#define ANSWER_SIZE 4001

struct answer {
	bool ok;
	char error[200];
	unsigned wait;	/* milliseconds after which to ask again; 0: the answer is final */
	char note[200]; /* why the job has no routing key */
	char state[16]; /* of a routing key: waiting, in_force, none, done */
	unsigned offset, own, total;
	struct environment env; /* without invalid variables */
	/* For a subscriber of five-phase updates; 0 or "" where the answer does not have them. */
	unsigned lease; /* milliseconds */
	char phase[8];
	uint64_t update, generation;
};

/* False if `lines` is not an answer as PROTOCOL.md defines it. */
bool answer_parse(struct answer *answer, const char *lines);
