/*
 * See the InfiniBand specification, 10.3.1.5 (SQD) and 17.2.8 (path migration). An armed queue pair migrates by itself
 * when it receives packets on the other path, so its path may change before this code requests it.
 */
#include "sar_migrate_verbs.h"

#include <errno.h>

static int load(void *context, unsigned offset)
{
	struct sar_verbs_qp *q = context;
	struct ibv_qp_attr now, attr = {.path_mig_state = IBV_MIG_REARM};
	struct ibv_qp_init_attr unused;
	int error = ibv_query_qp(q->qp, &now, IBV_QP_AV | IBV_QP_PORT | IBV_QP_PKEY_INDEX, &unused);

	if (error)
		return -error;
	attr.alt_ah_attr = now.ah_attr;
	attr.alt_ah_attr.dlid = (uint16_t)(q->peer_lid + offset);
	attr.alt_ah_attr.src_path_bits = (uint8_t)offset;
	attr.alt_ah_attr.sl = q->sl[offset];
	attr.alt_port_num = now.port_num;
	attr.alt_pkey_index = now.pkey_index;
	attr.alt_timeout = q->timeout;
	return -ibv_modify_qp(q->qp, &attr, IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE);
}

/* `alternate` is meaningful only while the path is armed. */
static int query(void *context, struct sar_qp_state *state)
{
	struct sar_verbs_qp *q = context;
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr unused;
	const int error = ibv_query_qp(q->qp, &attr, IBV_QP_AV | IBV_QP_PATH_MIG_STATE | IBV_QP_ALT_PATH, &unused);

	if (error)
		return -error;
	state->offset = (unsigned)(attr.ah_attr.dlid - q->peer_lid);
	state->alternate = (unsigned)(attr.alt_ah_attr.dlid - q->peer_lid);
	state->armed = attr.path_mig_state == IBV_MIG_ARMED;
	return 0;
}

static int drain(void *context)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1};

	return -ibv_modify_qp(((struct sar_verbs_qp *)context)->qp, &attr,
			      IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY);
}

static int migrate(void *context, unsigned offset)
{
	struct sar_verbs_qp *q = context;
	struct ibv_qp_attr attr = {.path_mig_state = IBV_MIG_MIGRATED};
	struct sar_qp_state now;
	const int error = query(q, &now);

	if (error || now.offset == offset)
		return error;
	return now.armed && now.alternate == offset ? -ibv_modify_qp(q->qp, &attr, IBV_QP_PATH_MIG_STATE) : -EAGAIN;
}

static int resume(void *context)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS, .cur_qp_state = IBV_QPS_SQD};

	return -ibv_modify_qp(((struct sar_verbs_qp *)context)->qp, &attr, IBV_QP_STATE | IBV_QP_CUR_STATE);
}

const struct sar_qp_ops sar_verbs_ops = {load, query, drain, migrate, resume};

void sar_verbs_event(struct sar_migrate *m, const struct ibv_async_event *event,
		     struct sar_verbs_qp *(*find)(struct ibv_qp *qp))
{
	struct sar_verbs_qp *q;

	switch (event->event_type) {
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_PATH_MIG:
		q = find(event->element.qp);
		break;
	default:
		return;
	}
	if (q && event->event_type == IBV_EVENT_SQ_DRAINED)
		sar_migrate_drained(m, q);
	else if (q)
		sar_migrate_pulled(m, q);
}
