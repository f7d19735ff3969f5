/*
 * What a subscriber may and must do, from what it has heard and the time: no sockets, no queue pairs. The
 * SUBSCRIBER of model/five_phase.pml, transition by transition.
 *
 * Times are milliseconds of a clock that only grows.
 */
#ifndef SAR_RULES_H
#define SAR_RULES_H
#include <stdbool.h>
#include <stdint.h>

/* What an update asks of us, in the order in which it does. */
enum stage {
	STAGE_NONE,
	STAGE_AWAY, /* unpath, install: be on offset 1 */
	STAGE_BACK, /* repath, idle: offset 0 may be used */
};

struct rules {
	uint64_t update, generation; /* the newest heard of */
	enum stage stage;	     /* of it */
	unsigned target;	     /* where all queue pairs are or go to */
	unsigned offset;	     /* 0 as long as one of them may send there */
	bool settled;		     /* all are on `target` */
	int64_t lease;		     /* its length, 0 before the first */
	int64_t fence_at;	     /* from here on nobody may use offset 0 */
	bool fenced;
	bool acked; /* the stage */
};

/* A process begins on the shelter: until somebody knows of it, tables may change under offset 0. */
void rules_start(struct rules *r);
/* True if it is news. What is older than what was heard before, or as old, changes nothing. */
bool rules_hear(struct rules *r, uint64_t update, enum stage stage, uint64_t generation);
/* The answer to a subscription that was sent at `sent`. False if it came too late to count. */
bool rules_lease(struct rules *r, int64_t sent, int64_t lease, int64_t now);
/* The offset to be on. Sets `fenced`. */
unsigned rules_wanted(struct rules *r, int64_t now);
/* Go there; false if that is under way. */
bool rules_go(struct rules *r, unsigned target);
/* All have arrived. */
void rules_arrive(struct rules *r);
/* An acknowledgement is due. */
bool rules_owes(const struct rules *r);
/* When to ask the door again after `sent`, if nobody but the door tells of updates, or notices do. */
int64_t rules_renew_at(const struct rules *r, int64_t sent, bool notices);

#endif
