/* The payload of PROTOCOL.md. */
#ifndef SAR_MESSAGE_H
#define SAR_MESSAGE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PAYLOAD_SIZE 4097 /* 4096 bytes and a '\0' */
#define ID_SIZE	     17

struct message {
	const char *event; /* start, end, hint; of an update in phases: subscribe, ack, unsubscribe */
	uint32_t job;
	int64_t user;		     /* -1: not known */
	const char *nodes, *traffic; /* NULL or "": not known */
	char id[ID_SIZE];
	const char *subscriber; /* NULL: the message is not of an update in phases, nor are these: */
	const char *phase;	/* NULL or "": not known */
	uint64_t update;
	unsigned offset;
};

/* Gives the message its `id`. */
void message_identify(struct message *message);
/* How many bytes the payload has; nodes that do not fit are left out. 0 if nothing fits. */
size_t message_payload(const struct message *message, char payload[PAYLOAD_SIZE]);

#endif
