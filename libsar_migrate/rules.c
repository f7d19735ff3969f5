/*
 * Updates and their stages only rise, so a message that was lost, late or doubled does no harm. The lease is
 * counted from when its request was sent, and its last third is kept for draining; the coordinator counts from
 * when the request arrived, so it ends there last.
 */
#include "rules.h"

#define FIRST_RENEWAL 1000 /* ms between requests before there is a lease */

void rules_start(struct rules *r)
{
	*r = (struct rules){.offset = 1, .target = 1, .settled = true};
}

bool rules_hear(struct rules *r, uint64_t update, enum stage stage, uint64_t generation)
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

unsigned rules_wanted(struct rules *r, int64_t now)
{
	if (now >= r->fence_at)
		r->fenced = true;
	return !r->fenced && r->stage == STAGE_BACK ? 0 : 1;
}

bool rules_go(struct rules *r, unsigned target)
{
	if (target == r->target)
		return false;
	r->target = target;
	r->offset = 0; /* from now on, or still */
	r->settled = false;
	return true;
}

void rules_arrive(struct rules *r)
{
	r->offset = r->target;
	r->settled = true;
}

bool rules_owes(const struct rules *r)
{
	return r->lease && r->update && !r->acked && r->settled &&
	       r->target == (r->stage == STAGE_AWAY ? 1 : 0);
}

int64_t rules_renew_at(const struct rules *r, int64_t sent, bool notices)
{
	if (!r->lease)
		return sent + FIRST_RENEWAL;
	/* In an update, and where nobody else tells, the door is asked more often. */
	return sent + r->lease / (r->stage == STAGE_AWAY || r->fenced ? 30 : notices ? 3 : 15);
}
