#include "paths.h"

#include <stdlib.h>
#include <string.h>

bool paths_add(struct paths *p, void *qp, unsigned offset)
{
	if (p->count == p->room) {
		const size_t room = p->room ? 2 * p->room : 64;
		struct path *more = realloc(p->path, room * sizeof(*more));

		if (!more)
			return false;
		p->path = more;
		p->room = room;
	}
	p->path[p->count++] = (struct path){.qp = qp, .offset = offset, .aim = offset, .loaded = NO_PATH};
	p->pending = true;
	return true;
}

static struct path *find(const struct paths *p, const void *qp)
{
	for (size_t i = 0; i < p->count; i++)
		if (p->path[i].qp == qp)
			return &p->path[i];
	return NULL;
}

void paths_remove(struct paths *p, const void *qp)
{
	struct path *path = find(p, qp);

	if (path)
		*path = p->path[--p->count];
}

void paths_drained(struct paths *p, const void *qp)
{
	struct path *path = find(p, qp);

	if (path && path->state == PATH_DRAINING) {
		path->state = PATH_TO_MIGRATE;
		p->pending = true;
	}
}

void paths_pulled(struct paths *p, const void *qp)
{
	struct path *path = find(p, qp);

	/* One that drains is on its way there already, and its own migration finds it done. */
	if (path && path->state < PATH_TO_DRAIN) {
		path->state = PATH_TO_LOOK;
		path->loaded = NO_PATH; /* used up, even where it was the path itself */
		p->pending = true;
	}
}

void paths_send_back(struct paths *p)
{
	for (size_t i = 0; i < p->count; i++)
		p->path[i].undrained = false;
	p->pending = true;
}

/* What a settled one is to do for `target`; false: nothing. */
static bool begin(struct path *path, unsigned target)
{
	if (path->undrained && target == 0)
		target = 1;
	else if (path->undrained && path->loaded == 1) {
		path->state = PATH_TO_DRAIN;
		return true;
	}
	path->aim = target;
	if (path->offset == 0 && target == 1 && path->loaded == 1)
		path->state = PATH_TO_ARM;
	else if (path->offset != target || path->loaded != 1)
		path->state = PATH_TO_LOAD;
	else
		return false;
	return true;
}

static int load(const struct sar_qp_ops *ops, struct path *path)
{
	const unsigned alternate = path->offset == 1 && path->aim == 0 ? 0 : 1;
	const int error = ops->load(path->qp, alternate);

	path->loaded = error ? NO_PATH : alternate;
	if (!error)
		path->state = path->aim == path->offset ? PATH_TO_LOOK : PATH_TO_ARM;
	return error;
}

static int look(const struct sar_qp_ops *ops, struct path *path)
{
	struct sar_qp_state now;
	const int error = ops->look(path->qp, &now);

	if (error)
		return error;
	if (now.offset != path->offset) {
		path->undrained = now.offset == 1;
		path->offset = now.offset;
		path->loaded = NO_PATH;
	}
	path->aim = path->offset;
	path->state = PATH_SETTLED;
	return 0;
}

static int arm(const struct sar_qp_ops *ops, struct path *path, unsigned target)
{
	struct sar_qp_state now;
	int error;

	if (path->aim != target) { /* it turns: what is armed must lead to the shelter */
		path->aim = path->offset;
		path->state = path->loaded == 1 ? PATH_TO_LOOK : PATH_TO_LOAD;
		return 0;
	}
	error = ops->look(path->qp, &now);
	/* Even one that was pulled has requests under way where it was. */
	if (!error && (now.offset == path->aim || (now.armed && now.alternate == path->aim)))
		path->state = PATH_TO_DRAIN;
	return error;
}

/* One operation; false if nothing more can be done now. */
static bool advance(const struct sar_qp_ops *ops, struct path *path, unsigned target, struct reason *why)
{
	static const char *const names[] = {"", "load", "look at", "arm", "drain", "", "migrate", "resume"};
	const enum path_state before = path->state;
	int error = 0;

	switch (before) {
	case PATH_SETTLED:
		return begin(path, target);
	case PATH_TO_LOAD:
		error = load(ops, path);
		break;
	case PATH_TO_LOOK:
		error = look(ops, path);
		break;
	case PATH_TO_ARM:
		error = arm(ops, path, target);
		break;
	case PATH_TO_DRAIN:
		error = ops->drain(path->qp);
		if (!error)
			path->state = PATH_DRAINING;
		break;
	case PATH_DRAINING:
		return false;
	case PATH_TO_MIGRATE:
		error = ops->migrate(path->qp, path->aim);
		if (!error) {
			path->offset = path->aim;
			path->loaded = NO_PATH;
			path->undrained = false;
			path->state = PATH_TO_RESUME;
		}
		break;
	case PATH_TO_RESUME:
		error = ops->resume(path->qp);
		if (!error)
			path->state = PATH_SETTLED;
		break;
	}
	if (error)
		REASON(why, "cannot %s a queue pair: %s", names[before], strerror(-error));
	return path->state != before;
}

static bool there(const struct path *path, unsigned target)
{
	if (path->undrained)
		return target == 0; /* wherever it is, it may be */
	return path->offset == target && path->aim == target &&
	       (target == 0 ? path->state <= PATH_TO_LOOK : path->state == PATH_SETTLED && path->loaded == 1);
}

bool paths_push(struct paths *p, unsigned target, struct reason *why)
{
	bool all = true;

	p->pending = false;
	for (size_t i = 0; i < p->count; i++) {
		struct path *path = &p->path[i];

		while (advance(p->ops, path, target, why))
			;
		all = all && there(path, target);
		p->pending = p->pending || (path->state != PATH_SETTLED && path->state != PATH_DRAINING);
	}
	return all;
}
