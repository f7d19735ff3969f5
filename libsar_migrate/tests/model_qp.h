/*
 * A model of reliably connected queue pairs and of the fabric between them, since no HCA was at hand: it shows
 * what the library does to queue pairs, not what an HCA does. Packets arrive in order within a path while its
 * tables stand still, in any order or not at all while they change; across paths, in any order. Requests are
 * answered by acknowledgements on the responder's own path; what is not answered is sent again from the first
 * on, as RC does. A responder that is armed migrates when it
 * hears one that has migrated on its alternate path (APM, the bit MigReq).
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
	/* Work requests: of the user; begun at least once; on the wire since the last fault; acknowledged. */
	uint64_t posted, begun, sent, answered;
	uint64_t expected;		 /* the next one that is taken from the peer */
	uint64_t heard_at;
	bool notify; /* tell when drained */
	bool pulled; /* tell that it has migrated by itself */
	bool stuck;  /* never drains: a broken HCA */
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
	uint64_t last[2]; /* arrival of the newest packet by path: paths keep order */
};

extern const struct sar_qp_ops model_ops;

void model_connect(struct model_net *net, struct model_qp *a, struct model_qp *b, unsigned path);
/* One step of time: what arrives, then what is sent. */
void model_tick(struct model_net *net, struct model_qp *qps, unsigned count);
/* Whether an event is due; true once. */
bool model_drained(struct model_qp *qp);
bool model_pulled(struct model_qp *qp);

#endif
