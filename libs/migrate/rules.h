/*
 * Decides what a subscriber may and must do, from the messages it has received and the time; no sockets, no queue pairs.
 * This is the SUBSCRIBER of model/five_phase.pml, transition by transition. Times are milliseconds of the monotonic clock.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

/* What an update requires of subscribers, in order. */
enum stage {
	STAGE_NONE,
	STAGE_AWAY, /* phases unpath and install: all queue pairs must be on offset 1 */
	STAGE_BACK, /* phases repath and idle: offset 0 may be used */
};

struct rules {
	uint64_t update, generation; /* of the newest update known */
	enum stage stage;	     /* of that update */
	unsigned target;	     /* the LID offset on which all queue pairs are, or to which they move */
	unsigned offset;	     /* 0 as long as any queue pair may send there, else 1 */
	bool settled;		     /* all queue pairs are on `target` */
	int64_t lease;		     /* the length of the lease; 0 before the first */
	int64_t fence_at;	     /* when offset 0 must be left unless the lease is renewed */
	bool fenced;		     /* that time has passed */
	bool acked;		     /* the stage has been acknowledged */
};

/* A process starts on the shelter: until the agent knows of it, tables of offset 0 may change at any time. */
void rules_start(struct rules *r);
/* Takes note of an update; false, and no change, if it is not newer than what is known. */
bool rules_receive(struct rules *r, uint64_t update, enum stage stage, uint64_t generation);
/* Takes the lease from the answer to a request sent at `sent`. False if the answer came too late to be valid. */
bool rules_lease(struct rules *r, int64_t sent, int64_t lease, int64_t now);
/* The LID offset on which the queue pairs must be now. Sets `fenced`. */
unsigned rules_required_offset(struct rules *r, int64_t now);
/* Starts a move to `target`; false if it is the target already. */
bool rules_set_target(struct rules *r, unsigned target);
/* All queue pairs have arrived at the target. */
void rules_arrived(struct rules *r);
/* Whether the stage is to be acknowledged now. */
bool rules_ack_due(const struct rules *r);
/* When to renew the subscription that was sent at `sent`; `notices`: notices announce updates, too. */
int64_t rules_renew_at(const struct rules *r, int64_t sent, bool notices);
