/*
 * The operations on a reliably connected queue pair of libibverbs: SQD to drain it, automatic path migration to move it.
 * Compiled against rdma-core but never run, because no HCA was available. README.md says what to try first.
 */
#ifndef SAR_MIGRATE_VERBS_H
#define SAR_MIGRATE_VERBS_H
#include <infiniband/verbs.h>

#include "sar_migrate.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The `qp` of sar_migrate_add(). Both ends of a connection need one, and LMC must be 1 or more. */
struct sar_verbs_qp {
	struct ibv_qp *qp;
	uint16_t peer_lid; /* the peer's base LID */
	uint8_t sl[2];	   /* service level by LID offset, from the path records */
	uint8_t timeout;   /* of the alternate path; encoded as IBV_QP_TIMEOUT */
};

extern const struct sar_qp_ops sar_verbs_ops;

/* Call this with every event of ibv_get_async_event(), before it is acknowledged. `find` returns the sar_verbs_qp of a
 * queue pair, or NULL. */
void sar_verbs_event(struct sar_migrate *m, const struct ibv_async_event *event,
		     struct sar_verbs_qp *(*find)(struct ibv_qp *qp));

#ifdef __cplusplus
}
#endif
#endif
