/*
 * The operations on a reliably connected queue pair of libibverbs: SQD to drain, automatic path migration to
 * change over. Compiled against rdma-core, never run: no HCA was at hand. README.md says what to try first.
 */
#ifndef SAR_MIGRATE_VERBS_H
#define SAR_MIGRATE_VERBS_H
#include <infiniband/verbs.h>

#include "sar_migrate.h"

#ifdef __cplusplus
extern "C" {
#endif

/* `qp` of sar_migrate_add. Both ends of a connection need one, and LMC is 1 or more. */
struct sar_verbs_qp {
	struct ibv_qp *qp;
	uint16_t peer_lid; /* the peer's base LID */
	uint8_t sl[2];	   /* by LID offset, as the path records say */
	uint8_t timeout;   /* of the alternate path, as IBV_QP_TIMEOUT */
};

extern const struct sar_qp_ops sar_verbs_ops;

/* Call with every event of ibv_get_async_event, before it is acknowledged; `find` makes the sar_verbs_qp of a
 * queue pair, or NULL. */
void sar_verbs_event(struct sar_migrate *m, const struct ibv_async_event *event,
		     struct sar_verbs_qp *(*find)(struct ibv_qp *qp));

#ifdef __cplusplus
}
#endif
#endif
