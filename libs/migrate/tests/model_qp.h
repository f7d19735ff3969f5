/*
 * A model of reliably connected queue pairs and of the fabric between them, because no HCA was available: it shows what
 * the library does to queue pairs, not what an HCA does. On one path, packets arrive in order while its tables do not
 * change, and in any order or not at all while they change; packets of different paths arrive in any order. The responder
 * acknowledges on its own path. Unacknowledged requests are sent again from the first one, as in RC. An armed responder
 * migrates when a packet of a migrated requester arrives on its alternate path (APM, the bit MigReq).
 */
#ifndef SAR_MODEL_QP_H
#define SAR_MODEL_QP_H
#include <stdbool.h>
#include <stdint.h>

#include "sar_migrate.h"

#define MODEL_FLIGHT 512 /* packets under way at most */
#define MODEL_WINDOW 8	 /* unanswered requests of a queue pair */
#define MODEL_RESEND 40	 /* ticks without an answer */

struct model_net;

struct model_qp {
	struct model_net *net;
	struct model_qp *peer;
	enum { MODEL_RTS, MODEL_SQD } state;
	enum { MODEL_MIGRATED, MODEL_REARM, MODEL_ARMED } migration;
	unsigned path, alternate; /* LID offsets */
	/* Work requests: posted by the user; sent at least once; sent since the last retry; acknowledged. */
	uint64_t posted, begun, sent, answered;
	uint64_t expected;		 /* the next request that is accepted from the peer */
	uint64_t heard_at;
	bool notify; /* the event "drained" is requested */
	bool pulled; /* it migrated by itself; the event is not delivered yet */
	bool stuck;  /* never drains, like a broken HCA */
};

struct model_packet {
	struct model_qp *to;
	uint64_t number, arrives;
	unsigned path;
	bool answer, migrated, used; /* `migrated`: MigReq */
};

struct model_net {
	bool changing;	     /* the tables of offset 0 */
	uint64_t now, random;
	uint64_t violations; /* packets on offset 0 while its tables change */
	uint64_t delivered;
	struct model_packet flight[MODEL_FLIGHT];
	uint64_t last[2]; /* arrival of the newest packet, by path: a path preserves the order */
};

extern const struct sar_qp_ops model_ops;

void model_connect(struct model_net *net, struct model_qp *a, struct model_qp *b, unsigned path);
/* One step of time: packets arrive, then packets are sent. */
void model_tick(struct model_net *net, struct model_qp *qps, unsigned count);
/* Whether the event is due; true once for each event. */
bool model_drained(struct model_qp *qp);
bool model_pulled(struct model_qp *qp);

#endif
