/*
 * rules.c and queue_pairs.c on the model: two processes of a job with connected queue pairs go through many updates, with
 * notices lost, duplicated and late. No packet may be sent on offset 0 while its tables change, and no work request may be
 * lost. As a check of the test itself, updates that do not wait for acknowledgements must show violations.
 */
#include <errno.h>

#include "../queue_pairs.h"
#include "../rules.h"
#include "check.h"
#include "model_qp.h"

#define PAIRS 6
#define QPS (2 * PAIRS)
#define FOREVER (1LL << 60)

struct side {
	struct rules rules;
	struct queue_pairs queue_pairs;
	uint64_t sent_back;
};
struct world {
	struct model_net net;
	struct model_qp qps[QPS]; /* even: of side 0, odd: of side 1 */
	struct side sides[2];
	uint64_t update;
	unsigned random;
};

static unsigned roll(struct world *w, unsigned below)
{
	w->random = w->random * 1103515245u + 12345u;
	return (w->random >> 8) % below;
}

static void step(struct side *side)
{
	struct reason why;
	const bool turned = rules_set_target(&side->rules, rules_required_offset(&side->rules, 0));

	if (side->rules.stage == STAGE_BACK && (turned || side->sent_back != side->rules.update)) {
		side->sent_back = side->rules.update;
		queue_pairs_send_back(&side->queue_pairs);
	}
	if (queue_pairs_push(&side->queue_pairs, side->rules.target, &why))
		rules_arrived(&side->rules);
}

static void tick(struct world *w, bool post)
{
	for (int i = 0; i < QPS; i++) {
		w->qps[i].posted += post && !roll(w, 3);
		if (model_pulled(&w->qps[i]))
			queue_pairs_pulled(&w->sides[i % 2].queue_pairs, &w->qps[i]);
		if (model_drained(&w->qps[i]))
			queue_pairs_drained(&w->sides[i % 2].queue_pairs, &w->qps[i]);
	}
	model_tick(&w->net, w->qps, QPS);
	for (int s = 0; s < 2; s++)
		step(&w->sides[s]);
}

/* Each side receives the notice some time, perhaps repeatedly, perhaps mixed with the notice of the previous update. */
static bool spread(struct world *w, enum stage stage, bool wait)
{
	for (unsigned time = 0; time < 20000; time++) {
		bool owed = false;

		for (int s = 0; s < 2; s++) {
			if (!roll(w, 30))
				rules_receive(&w->sides[s].rules, w->update, stage, 1);
			if (!roll(w, 30))
				rules_receive(&w->sides[s].rules, w->update - 1, STAGE_BACK, 1);
			owed = owed || w->sides[s].rules.update != w->update || w->sides[s].rules.stage != stage ||
			       !rules_ack_due(&w->sides[s].rules);
		}
		tick(w, true);
		if (!owed || (!wait && time > 20))
			return true;
	}
	return false;
}

static struct world *new_world(unsigned seed)
{
	struct world *w = calloc(1, sizeof(*w));

	w->random = seed;
	w->net.random = seed;
	w->update = 1;
	for (int i = 0; i < QPS; i += 2)
		model_connect(&w->net, &w->qps[i], &w->qps[i + 1], 1);
	for (int s = 0; s < 2; s++) {
		rules_start(&w->sides[s].rules);
		rules_lease(&w->sides[s].rules, 0, FOREVER, 0);
		rules_receive(&w->sides[s].rules, w->update, STAGE_BACK, 0);
		w->sides[s].queue_pairs.ops = &model_ops;
	}
	for (int i = 0; i < QPS; i++)
		CHECK(queue_pairs_add(&w->sides[i % 2].queue_pairs, &w->qps[i], 1), "memory");
	return w;
}

static uint64_t updates(unsigned seed, unsigned count, bool wait)
{
	struct world *w = new_world(seed);
	uint64_t violations;

	for (unsigned n = 0; n < count; n++) {
		w->update++;
		CHECK(spread(w, STAGE_AWAY, wait), "seed %u: unpath hangs", seed);
		w->net.changing = true;
		for (unsigned time = 0; time < 50; time++)
			tick(w, true);
		w->net.changing = false;
		CHECK(spread(w, STAGE_BACK, true), "seed %u: repath hangs", seed);
	}
	for (unsigned time = 0; time < 20000; time++)
		tick(w, false);
	for (int i = 0; i < QPS; i++)
		CHECK(w->qps[i].posted == w->qps[i].answered && w->qps[i].peer->expected == w->qps[i].posted,
		      "seed %u: lost", seed);
	violations = w->net.violations;
	for (int s = 0; s < 2; s++)
		free(w->sides[s].queue_pairs.pair);
	free(w);
	return violations;
}

/* Operations that fail are tried again; while a queue pair does not drain, nothing is acknowledged. */
static int failing, failed;

static int sometimes(int result)
{
	return failing && failed++ % 3 ? -ENOMEM : result;
}
static int drain(void *qp)
{
	return sometimes(0) ? -ENOMEM : model_ops.drain(qp);
}
static int query(void *qp, struct sar_qp_state *state)
{
	return sometimes(0) ? -ENOMEM : model_ops.query(qp, state);
}
static int migrate(void *qp, unsigned offset)
{
	return sometimes(0) ? -ENOMEM : model_ops.migrate(qp, offset);
}
static int resume(void *qp)
{
	return sometimes(0) ? -ENOMEM : model_ops.resume(qp);
}
static int load(void *qp, unsigned offset)
{
	return sometimes(0) ? -ENOMEM : model_ops.load(qp, offset);
}

static void trouble(void)
{
	static const struct sar_qp_ops ops = {load, query, drain, migrate, resume};
	struct model_net *net = calloc(1, sizeof(*net));
	struct model_qp qps[2];
	struct queue_pairs p = {.ops = &ops};
	struct reason why = {.text = ""};
	int tries = 0;

	model_connect(net, &qps[0], &qps[1], 1);
	queue_pairs_add(&p, &qps[0], 1);
	queue_pairs_add(&p, &qps[1], 1);
	failing = 1;
	while (!queue_pairs_push(&p, 0, &why) && ++tries < 100) {
		model_tick(net, qps, 2);
		for (int i = 0; i < 2; i++)
			if (model_drained(&qps[i]))
				queue_pairs_drained(&p, &qps[i]);
	}
	CHECK(tries > 3 && tries < 100 && qps[0].path == 0 && qps[1].path == 0, "%d tries", tries);
	CHECK(strstr(why.text, "a queue pair: Cannot allocate memory"), "%s", why.text);
	failing = 0;
	CHECK(queue_pairs_push(&p, 0, &why) && !p.pending, "nothing is left");
	qps[1].stuck = true;
	for (tries = 0; tries < 1000; tries++) {
		CHECK(!queue_pairs_push(&p, 1, &why), "one does not drain");
		model_tick(net, qps, 2);
		if (model_drained(&qps[0]))
			queue_pairs_drained(&p, &qps[0]);
	}
	queue_pairs_remove(&p, &qps[1]);
	CHECK(queue_pairs_push(&p, 1, &why), "without it");
	free(p.pair);
	free(net);
}

int main(void)
{
	uint64_t found = 0;

	for (unsigned seed = 1; seed <= 40; seed++)
		CHECK(!updates(seed, 10, true), "seed %u: sent on tables that changed", seed);
	for (unsigned seed = 1; seed <= 5; seed++)
		found += updates(seed, 10, false) > 0;
	CHECK(found == 5, "who does not wait is found out: %d of 5", (int)found);
	trouble();
	return checked("queue pairs");
}
