/*
 * The queue pairs on their way from one LID offset to the other: load, drain, migrate, resume (sar-2016, Section 3.3).
 *
 * An HCA whose alternate path is armed migrates by itself when its peer does (automatic path migration). So the path
 * that is armed decides where a peer can pull a queue pair, and a peer can be armed only while this end is armed, too.
 * The shelter is therefore always the alternate path, even of a queue pair that is on the shelter already: to be pulled
 * there is harmless, and neither end has to wait for the other. Only a queue pair that returns to offset 0 arms offset 0
 * first. (The paper loads the opposite path as soon as a queue pair has migrated; a late peer could then pull a process
 * that has acknowledged onto tables that change.)
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "reason.h"
#include "sar_migrate.h"

enum qp_state {
	QP_SETTLED,
	QP_TO_LOAD,  /* the alternate path is to be loaded */
	QP_TO_QUERY, /* the peer may have pulled it meanwhile: query where it is */
	QP_TO_ARM,   /* wait until the two HCAs have armed the alternate path */
	QP_TO_DRAIN,
	QP_DRAINING, /* wait for sar_migrate_drained() */
	QP_TO_MIGRATE,
	QP_TO_RESUME,
};
struct queue_pair {
	void *handle;	      /* the caller's, as given to sar_migrate_add */
	unsigned offset, aim; /* LID offset; `aim` differs from `offset` during a move */
	unsigned loaded;      /* the LID offset of the alternate path, or NOT_LOADED */
	/* The peer pulled it off offset 0 while requests were under way there. The update that caused this will be
	 * announced soon, so the queue pair stays on offset 1 until it is sent back. */
	bool undrained;
	enum qp_state state;
};
struct queue_pairs {
	const struct sar_qp_ops *ops;
	struct queue_pair *pair;
	size_t count, room;
	bool pending; /* an operation is to be tried again */
};

#define NOT_LOADED 2u

/* False without memory. */
bool queue_pairs_add(struct queue_pairs *q, void *handle, unsigned offset);
void queue_pairs_remove(struct queue_pairs *q, const void *handle);
void queue_pairs_drained(struct queue_pairs *q, const void *handle);
/* The HCA has migrated the queue pair to its alternate path by itself. */
void queue_pairs_pulled(struct queue_pairs *q, const void *handle);
/* Offset 0 may be used again. */
void queue_pairs_send_back(struct queue_pairs *q);
/* Does all that can be done now; true once all queue pairs are on `target`. `why` describes the last operation that
 * failed. A queue pair that drains completes its move first, even if `target` has changed since. */
bool queue_pairs_push(struct queue_pairs *q, unsigned target, struct reason *why);
