/*
 * The queue pairs, on their way from one LID offset to the other: load, drain, migrate, resume (Section 3.3).
 *
 * An HCA whose alternate path is armed changes over by itself when its peer does (automatic path migration), so
 * what is armed decides where a peer can pull us, and only who has something armed lets its peer be armed. The
 * shelter is always the alternate path, also of itself: to be pulled there is harmless, and nobody waits for
 * anybody. Only who goes back to offset 0 arms that first. (The paper loads the opposite path as soon as one has
 * migrated; a late peer could then pull a process that has acknowledged onto tables that change.)
 */
#ifndef SAR_PATHS_H
#define SAR_PATHS_H
#include <stdbool.h>
#include <stddef.h>

#include "reason.h"
#include "sar_migrate.h"

enum path_state {
	PATH_SETTLED,
	PATH_TO_LOAD, /* the alternate path */
	PATH_TO_LOOK, /* it may have been pulled meanwhile */
	PATH_TO_ARM,  /* the HCAs do that */
	PATH_TO_DRAIN,
	PATH_DRAINING, /* sar_migrate_drained() is awaited */
	PATH_TO_MIGRATE,
	PATH_TO_RESUME,
};
struct path {
	void *qp;
	unsigned offset, aim; /* `aim` is the other one during a move */
	unsigned loaded;      /* the alternate path */
	/* Pulled off offset 0 with requests still under way there. Why, we shall soon hear, so it stays where it
	 * is until it is sent back. */
	bool undrained;
	enum path_state state;
};
struct paths {
	const struct sar_qp_ops *ops;
	struct path *path;
	size_t count, room;
	bool pending; /* something is to be tried again */
};

#define NO_PATH 2u /* as `loaded` */

/* False without memory. */
bool paths_add(struct paths *p, void *qp, unsigned offset);
void paths_remove(struct paths *p, const void *qp);
void paths_drained(struct paths *p, const void *qp);
/* The HCA has changed over to the alternate path by itself. */
void paths_pulled(struct paths *p, const void *qp);
/* Offset 0 may be used, or may be used again. */
void paths_send_back(struct paths *p);
/* Does what can be done; true once all are on `target`. `why` is the last operation that failed. What drains goes
 * where it was to go first, whatever `target` is now. */
bool paths_push(struct paths *p, unsigned target, struct reason *why);

#endif
