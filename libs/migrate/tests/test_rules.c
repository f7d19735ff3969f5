/* What a subscriber may and must do after each message. */
#include "../rules.h"

#include "check.h"

#define LEASE 30000

static struct rules leased(void)
{
	struct rules r;

	rules_start(&r);
	CHECK(rules_required_offset(&r, 0) == 1, "nobody knows of us");
	CHECK(rules_lease(&r, 0, LEASE, 10), "in time");
	CHECK(rules_required_offset(&r, 10) == 1, "what the phase is was not said");
	CHECK(rules_receive(&r, 5, STAGE_BACK, 1), "idle");
	CHECK(rules_required_offset(&r, 10) == 0, "leased and idle");
	r.acked = true;
	CHECK(rules_set_target(&r, 0) && !rules_set_target(&r, 0) && !r.offset, "from now on");
	rules_arrived(&r);
	return r;
}

static void order(void)
{
	struct rules r = leased();

	CHECK(!rules_ack_due(&r), "of what is over");
	CHECK(rules_receive(&r, 6, STAGE_AWAY, 2) && rules_required_offset(&r, 20) == 1, "unpath");
	CHECK(!rules_ack_due(&r), "not there yet");
	CHECK(rules_set_target(&r, 1) && !r.offset, "still");
	CHECK(!rules_ack_due(&r), "on the way");
	rules_arrived(&r);
	CHECK(r.offset == 1, "all are");
	CHECK(rules_set_target(&r, 0) && rules_set_target(&r, 1) && !r.offset && !rules_ack_due(&r), "turned on the way back");
	rules_arrived(&r);
	CHECK(rules_ack_due(&r), "there");
	r.acked = true;
	CHECK(!rules_receive(&r, 6, STAGE_AWAY, 2) && !rules_ack_due(&r), "twice");
	CHECK(!rules_receive(&r, 5, STAGE_BACK, 1) && rules_required_offset(&r, 20) == 1, "a late idle of the update before");
	CHECK(rules_receive(&r, 6, STAGE_BACK, 2) && rules_required_offset(&r, 20) == 0, "repath");
	CHECK(!rules_ack_due(&r), "not back yet");
	rules_set_target(&r, 0);
	rules_arrived(&r);
	CHECK(rules_ack_due(&r), "back");
	CHECK(!rules_receive(&r, 6, STAGE_AWAY, 2), "a late unpath");
	CHECK(rules_receive(&r, 9, STAGE_BACK, 2) && r.update == 9 && !r.acked, "updates that were missed");
}

static void leases(void)
{
	struct rules r = leased();

	CHECK(rules_required_offset(&r, 19999) == 0 && rules_required_offset(&r, 20000) == 1 && r.fenced, "two thirds");
	CHECK(rules_required_offset(&r, 19999) == 1, "fenced until there is a lease");
	CHECK(!rules_lease(&r, 1000, LEASE, 21000), "an answer that came too late");
	CHECK(rules_lease(&r, 20500, LEASE, 21000) && rules_required_offset(&r, 21000) == 0, "a new one");
	CHECK(rules_lease(&r, 1000, LEASE, 20000) && rules_required_offset(&r, 40499) == 0, "an older one takes nothing away");
	CHECK(!rules_lease(&r, 0, 0, 0), "none");
}

static void renewals(void)
{
	struct rules r;

	rules_start(&r);
	CHECK(rules_renew_at(&r, 5, true) == 1005, "nobody there");
	r = leased();
	CHECK(rules_renew_at(&r, 0, true) == LEASE / 3, "a third");
	CHECK(rules_renew_at(&r, 0, false) < LEASE / 3, "nobody else tells");
	rules_receive(&r, 6, STAGE_AWAY, 2);
	CHECK(rules_renew_at(&r, 0, true) == LEASE / 30, "in an update");
}

int main(void)
{
	order();
	leases();
	renewals();
	return checked("rules");
}
