#include "model_qp.h"

#include <errno.h>
#include <string.h>

static uint64_t roll(struct model_net *net, uint64_t below)
{
	net->random = net->random * 6364136223846793005u + 1442695040888963407u;
	return (net->random >> 33) % below;
}

void model_connect(struct model_net *net, struct model_qp *a, struct model_qp *b, unsigned path)
{
	*a = (struct model_qp){.net = net, .peer = b, .path = path, .alternate = path};
	*b = (struct model_qp){.net = net, .peer = a, .path = path, .alternate = path};
}

static bool send_packet(struct model_qp *from, uint64_t number, bool answer)
{
	struct model_net *net = from->net;
	const bool moving = net->changing && from->path == 0;
	struct model_packet *free = NULL;
	uint64_t arrives = net->now + 1 + roll(net, 5);

	for (unsigned i = 0; i < MODEL_FLIGHT && !free; i++)
		if (!net->flight[i].used)
			free = &net->flight[i];
	if (!free)
		return false;
	if (moving)
		net->violations++;
	else if (arrives < net->last[from->path])
		arrives = net->last[from->path];
	else
		net->last[from->path] = arrives;
	*free = (struct model_packet){from->peer, number, arrives, from->path, answer,
				       from->migration == MODEL_MIGRATED, true};
	if (moving && roll(net, 3) == 0)
		free->used = false; /* lost in a loop of the mixed tables */
	return true;
}

static void arm(struct model_qp *qp)
{
	struct model_qp *peer = qp->peer;

	if (qp->migration != MODEL_MIGRATED && peer->migration != MODEL_MIGRATED)
		qp->migration = peer->migration = MODEL_ARMED;
}

static void arrive(struct model_packet *packet)
{
	struct model_qp *qp = packet->to;

	packet->used = false;
	if (qp->migration == MODEL_ARMED && packet->migrated && packet->path == qp->alternate) {
		qp->path = packet->path;
		qp->migration = MODEL_MIGRATED;
		qp->pulled = true;
	}
	if (packet->answer) {
		if (packet->number > qp->answered)
			qp->answered = packet->number;
		if (qp->sent < qp->answered)
			qp->sent = qp->answered;
		qp->heard_at = qp->net->now;
		return;
	}
	if (packet->number == qp->expected) {
		qp->expected++;
		qp->net->delivered++;
	}
	/* A request out of order is answered with the last one in order, so the sender goes back to it. */
	send_packet(qp, qp->expected, true);
}

static void transmit(struct model_qp *qp)
{
	/* While draining, requests that were begun are completed, and no new one is sent. */
	const uint64_t limit = qp->state == MODEL_RTS ? qp->posted : qp->begun;

	if (qp->sent == qp->answered)
		qp->heard_at = qp->net->now;
	else if (qp->net->now - qp->heard_at > MODEL_RESEND) {
		qp->sent = qp->answered;
		qp->heard_at = qp->net->now;
	}
	while (qp->sent < limit && qp->sent - qp->answered < MODEL_WINDOW && send_packet(qp, qp->sent, false))
		if (++qp->sent > qp->begun)
			qp->begun = qp->sent;
}

void model_tick(struct model_net *net, struct model_qp *qps, unsigned count)
{
	net->now++;
	for (unsigned i = 0; i < MODEL_FLIGHT; i++)
		if (net->flight[i].used && net->flight[i].arrives <= net->now)
			arrive(&net->flight[i]);
	for (unsigned i = 0; i < count; i++)
		transmit(&qps[i]);
}

bool model_drained(struct model_qp *qp)
{
	const bool drained = qp->notify && qp->state == MODEL_SQD && qp->answered == qp->begun && !qp->stuck;

	if (drained)
		qp->notify = false;
	return drained;
}

bool model_pulled(struct model_qp *qp)
{
	const bool pulled = qp->pulled;

	qp->pulled = false;
	return pulled;
}

static int query(void *context, struct sar_qp_state *state)
{
	const struct model_qp *qp = context;

	*state = (struct sar_qp_state){qp->path, qp->alternate, qp->migration == MODEL_ARMED};
	return 0;
}

static int drain(void *context)
{
	struct model_qp *qp = context;

	if (qp->state == MODEL_SQD)
		return -EINVAL;
	qp->state = MODEL_SQD;
	qp->notify = true;
	return 0;
}

static int migrate(void *context, unsigned offset)
{
	struct model_qp *qp = context;

	if (qp->state != MODEL_SQD || qp->answered < qp->begun)
		return -EINVAL;
	if (qp->path == offset)
		return 0;
	if (qp->migration != MODEL_ARMED || qp->alternate != offset)
		return -EAGAIN;
	qp->path = offset;
	qp->migration = MODEL_MIGRATED;
	return 0;
}

static int resume(void *context)
{
	struct model_qp *qp = context;

	if (qp->state != MODEL_SQD)
		return -EINVAL;
	qp->state = MODEL_RTS;
	return 0;
}

static int load(void *context, unsigned offset)
{
	struct model_qp *qp = context;

	qp->alternate = offset;
	qp->migration = MODEL_REARM;
	arm(qp);
	return 0;
}

const struct sar_qp_ops model_ops = {load, query, drain, migrate, resume};
