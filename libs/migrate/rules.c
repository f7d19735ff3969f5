/*
 * Updates and their stages only increase, so a message that is lost, late or duplicated does no harm. The lease counts
 * from when its request was sent, and the last third of it is reserved for draining. The coordinator counts from when
 * the request arrived, so the lease ends there last.
 */
#include "rules.h"

#define FIRST_RENEWAL 1000 /* ms between requests before there is a lease */

void rules_start(struct rules *r)
{
	*r = (struct rules){.offset = 1, .target = 1, .settled = true};
}

bool rules_receive(struct rules *r, uint64_t update, enum stage stage, uint64_t generation)
{
	if (update < r->update || (update == r->update && stage <= r->stage))
		return false;
	r->update = update;
	r->stage = stage;
	r->generation = generation;
	r->acked = false;
	return true;
}

bool rules_lease(struct rules *r, int64_t sent, int64_t lease, int64_t now)
{
	const int64_t until = sent + 2 * lease / 3;

	if (lease <= 0 || now >= until)
		return false;
	r->lease = lease;
	if (until > r->fence_at)
		r->fence_at = until;
	r->fenced = false;
	return true;
}

unsigned rules_required_offset(struct rules *r, int64_t now)
{
	if (now >= r->fence_at)
		r->fenced = true;
	return !r->fenced && r->stage == STAGE_BACK ? 0 : 1;
}

bool rules_set_target(struct rules *r, unsigned target)
{
	if (target == r->target)
		return false;
	r->target = target;
	r->offset = 0; /* during the move, some queue pairs may use offset 0 */
	r->settled = false;
	return true;
}

void rules_arrived(struct rules *r)
{
	r->offset = r->target;
	r->settled = true;
}

bool rules_ack_due(const struct rules *r)
{
	return r->lease && r->update && !r->acked && r->settled &&
	       r->target == (r->stage == STAGE_AWAY ? 1 : 0);
}

int64_t rules_renew_at(const struct rules *r, int64_t sent, bool notices)
{
	if (!r->lease)
		return sent + FIRST_RENEWAL;
	/* The agent is asked more often during an update, and where there are no notices. */
	return sent + r->lease / (r->stage == STAGE_AWAY || r->fenced ? 30 : notices ? 3 : 15);
}
