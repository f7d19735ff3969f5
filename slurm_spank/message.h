/* The payload of PROTOCOL.md. */
#ifndef SAR_MESSAGE_H
#define SAR_MESSAGE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PAYLOAD_SIZE 4097 /* 4096 bytes and a '\0' */
#define ID_SIZE	     17

struct message {
	const char *event; /* start, end, hint; of an update in phases: subscribe, ack, unsubscribe; of a
			    * routing key: key, key-done */
	uint32_t job;
	int64_t user;		     /* -1: not known */
	const char *nodes, *traffic; /* NULL or "": not known */
	const char *phase;	     /* of an update, or of a routing key; likewise */
	const char *tasks;	     /* of each node, as SLURM_TASKS_PER_NODE; likewise */
	unsigned lease;		     /* milliseconds; 0: not known */
	const int *pairs;	     /* ranks of a routing key: from, to, from, to, … */
	size_t pair_count;
	char id[ID_SIZE];
	const char *subscriber; /* NULL: the message is not of an update in phases, nor are these: */
	uint64_t update;
	unsigned offset;
};

/* Gives the message its `id`. */
void message_identify(struct message *message);
/* How many bytes the payload has; nodes that do not fit are left out. 0 if nothing fits. */
size_t message_payload(const struct message *message, char payload[PAYLOAD_SIZE]);
/* The same into any room. */
size_t message_write(const struct message *message, char *payload, size_t room);

#endif
