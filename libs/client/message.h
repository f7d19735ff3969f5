/* The request that a client sends to the agent: the payload of slurm_spank/PROTOCOL.md and KEYS.md, as JSON. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PAYLOAD_SIZE 4097 /* 4,096 bytes and a '\0' */
#define ID_SIZE	     17

struct message {
	const char *event; /* jobs: start, end, hint; five-phase update: subscribe, ack, unsubscribe; routing keys:
			    * key, key-done */
	uint32_t job;
	int64_t user;		     /* uid of the job's owner; -1: unknown */
	const char *nodes, *traffic; /* NULL or "": unknown */
	const char *phase;	     /* of a five-phase update, or the name of a routing key's phase; NULL or "": none */
	const char *tasks;	     /* tasks on each node, in the form of SLURM_TASKS_PER_NODE; NULL or "": unknown */
	const int *pairs;	     /* ranks of a routing key: from, to, from, to, … */
	size_t pair_count;
	char id[ID_SIZE];
	const char *subscriber; /* NULL: the message is not part of a five-phase update, and these two are not sent: */
	uint64_t update;
	unsigned offset;
};

/* Fills in `id` with 16 random hexadecimal digits. */
void message_identify(struct message *message);
/* Writes the JSON to `payload` and returns its length. `nodes` is left out if it does not fit; 0 if the rest does
 * not fit either. */
size_t message_encode(const struct message *message, char *payload, size_t room);
