#include "queue_pairs.h"

#include <stdlib.h>
#include <string.h>

bool queue_pairs_add(struct queue_pairs *q, void *handle, unsigned offset)
{
	if (q->count == q->room) {
		const size_t room = q->room ? 2 * q->room : 64;
		struct queue_pair *grown = realloc(q->pair, room * sizeof(*grown));

		if (!grown)
			return false;
		q->pair = grown;
		q->room = room;
	}
	q->pair[q->count++] =
		(struct queue_pair){.handle = handle, .offset = offset, .aim = offset, .loaded = NOT_LOADED};
	q->pending = true;
	return true;
}

static struct queue_pair *find(const struct queue_pairs *q, const void *handle)
{
	for (size_t i = 0; i < q->count; i++)
		if (q->pair[i].handle == handle)
			return &q->pair[i];
	return NULL;
}

void queue_pairs_remove(struct queue_pairs *q, const void *handle)
{
	struct queue_pair *qp = find(q, handle);

	if (qp)
		*qp = q->pair[--q->count];
}

void queue_pairs_drained(struct queue_pairs *q, const void *handle)
{
	struct queue_pair *qp = find(q, handle);

	if (qp && qp->state == QP_DRAINING) {
		qp->state = QP_TO_MIGRATE;
		q->pending = true;
	}
}

void queue_pairs_pulled(struct queue_pairs *q, const void *handle)
{
	struct queue_pair *qp = find(q, handle);

	/* A queue pair that drains is on its way there already; its own migration will find that nothing is left to do. */
	if (qp && qp->state < QP_TO_DRAIN) {
		qp->state = QP_TO_QUERY;
		qp->loaded = NOT_LOADED; /* the alternate path is used up, even if it equalled the path itself */
		q->pending = true;
	}
}

void queue_pairs_send_back(struct queue_pairs *q)
{
	for (size_t i = 0; i < q->count; i++)
		q->pair[i].undrained = false;
	q->pending = true;
}

/* Starts what a settled queue pair has to do for `target`; false if it has nothing to do. */
static bool begin(struct queue_pair *qp, unsigned target)
{
	if (qp->undrained && target == 0)
		target = 1;
	else if (qp->undrained && qp->loaded == 1) {
		qp->state = QP_TO_DRAIN;
		return true;
	}
	qp->aim = target;
	if (qp->offset == 0 && target == 1 && qp->loaded == 1)
		qp->state = QP_TO_ARM;
	else if (qp->offset != target || qp->loaded != 1)
		qp->state = QP_TO_LOAD;
	else
		return false;
	return true;
}

static int load(const struct sar_qp_ops *ops, struct queue_pair *qp)
{
	const unsigned alternate = qp->offset == 1 && qp->aim == 0 ? 0 : 1;
	const int error = ops->load(qp->handle, alternate);

	qp->loaded = error ? NOT_LOADED : alternate;
	if (!error)
		qp->state = qp->aim == qp->offset ? QP_TO_QUERY : QP_TO_ARM;
	return error;
}

static int query(const struct sar_qp_ops *ops, struct queue_pair *qp)
{
	struct sar_qp_state now;
	const int error = ops->query(qp->handle, &now);

	if (error)
		return error;
	if (now.offset != qp->offset) {
		qp->undrained = now.offset == 1;
		qp->offset = now.offset;
		qp->loaded = NOT_LOADED;
	}
	qp->aim = qp->offset;
	qp->state = QP_SETTLED;
	return 0;
}

static int arm(const struct sar_qp_ops *ops, struct queue_pair *qp, unsigned target)
{
	struct sar_qp_state now;
	int error;

	if (qp->aim != target) { /* it turns back: the armed path must lead to the shelter again */
		qp->aim = qp->offset;
		qp->state = qp->loaded == 1 ? QP_TO_QUERY : QP_TO_LOAD;
		return 0;
	}
	error = ops->query(qp->handle, &now);
	/* A queue pair that was pulled there must drain, too: it has requests under way on its old path. */
	if (!error && (now.offset == qp->aim || (now.armed && now.alternate == qp->aim)))
		qp->state = QP_TO_DRAIN;
	return error;
}

/* Does one operation; false if nothing more can be done now. */
static bool advance(const struct sar_qp_ops *ops, struct queue_pair *qp, unsigned target, struct reason *why)
{
	static const char *const names[] = {"", "load", "query", "arm", "drain", "", "migrate", "resume"};
	const enum qp_state before = qp->state;
	int error = 0;

	switch (before) {
	case QP_SETTLED:
		return begin(qp, target);
	case QP_TO_LOAD:
		error = load(ops, qp);
		break;
	case QP_TO_QUERY:
		error = query(ops, qp);
		break;
	case QP_TO_ARM:
		error = arm(ops, qp, target);
		break;
	case QP_TO_DRAIN:
		error = ops->drain(qp->handle);
		if (!error)
			qp->state = QP_DRAINING;
		break;
	case QP_DRAINING:
		return false;
	case QP_TO_MIGRATE:
		error = ops->migrate(qp->handle, qp->aim);
		if (!error) {
			qp->offset = qp->aim;
			qp->loaded = NOT_LOADED;
			qp->undrained = false;
			qp->state = QP_TO_RESUME;
		}
		break;
	case QP_TO_RESUME:
		error = ops->resume(qp->handle);
		if (!error)
			qp->state = QP_SETTLED;
		break;
	}
	if (error)
		REASON(why, "cannot %s a queue pair: %s", names[before], strerror(-error));
	return qp->state != before;
}

static bool has_arrived(const struct queue_pair *qp, unsigned target)
{
	if (qp->undrained)
		return target == 0; /* on the way back to offset 0 it does not matter where it is */
	return qp->offset == target && qp->aim == target &&
	       (target == 0 ? qp->state <= QP_TO_QUERY : qp->state == QP_SETTLED && qp->loaded == 1);
}

bool queue_pairs_push(struct queue_pairs *q, unsigned target, struct reason *why)
{
	bool all = true;

	q->pending = false;
	for (size_t i = 0; i < q->count; i++) {
		struct queue_pair *qp = &q->pair[i];

		while (advance(q->ops, qp, target, why))
			;
		all = all && has_arrived(qp, target);
		q->pending = q->pending || (qp->state != QP_SETTLED && qp->state != QP_DRAINING);
	}
	return all;
}
