/*
 * Which routes to use. Two generations are kept in memory: the newest valid one read from the file,
 * and the last one that was in force. Whichever fits the live fabric, newest first, is installed;
 * when neither does, the engine says so and OpenSM goes on to the next engine of its list.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "bridge.h"

static bool same_file(const struct stat *a, const struct stat *b)
{
	return a->st_ino == b->st_ino && a->st_dev == b->st_dev && a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* Read the file now; false, and why, unless it is valid and of generation `wanted` (0: any). */
bool plans_take_file(struct bridge *b, uint64_t wanted, struct reason *why)
{
	struct stat seen = {0};
	struct routes *old = NULL, *read;
	struct reason problem = {""};
	bool good;

	/* Looked at before it is read: should it be replaced in between, it is read again later. */
	if (stat(b->options.routes_path, &seen))
		memset(&seen, 0, sizeof(seen));
	read = routes_read(b->options.routes_path, &problem);
	good = read && (!wanted || read->generation == wanted);
	if (read && !good)
		REASON(why, "%.300s holds generation %ju, not %ju", b->options.routes_path,
		       (uintmax_t)read->generation, (uintmax_t)wanted);
	pthread_mutex_lock(&b->mutex);
	b->seen = seen;
	b->file_problem = problem;
	if (read) {
		old = b->newest;
		b->newest = read;
	} else {
		b->last_error = problem;
	}
	pthread_mutex_unlock(&b->mutex);
	routes_drop(old);
	if (!read)
		*why = problem;
	return good;
}

/* A standby that takes over, or an OpenSM that restarts, finds a file that nobody loads into it. */
static void take_changed_file(struct bridge *b)
{
	struct stat now = {0};
	struct reason why;
	bool changed;

	if (stat(b->options.routes_path, &now))
		memset(&now, 0, sizeof(now));
	pthread_mutex_lock(&b->mutex);
	/* The very first look counts as a change, so that a missing file gets its sentence. */
	changed = !same_file(&now, &b->seen) || (!b->newest && !*b->file_problem.text);
	pthread_mutex_unlock(&b->mutex);
	if (changed && !plans_take_file(b, 0, &why))
		BRIDGE_LOG(b, OSM_LOG_ERROR, "%s\n", why.text);
}

static struct install *try(struct live *live, osm_switch_t **sw, struct routes *routes,
			   struct reason *why)
{
	struct install *chosen = NULL;
	struct fit fit;

	if (!fit_find(&fit, routes, live, why))
		fit_free(&fit);
	else if (!(chosen = install_new(live, sw, &fit, routes)))
		REASON(why, "no memory to install the routes");
	return chosen;
}

static void remember_topology(struct bridge *b, const struct live *live)
{
	const uint64_t fingerprint = live_fingerprint(live);

	if (fingerprint == b->fingerprint)
		return;
	b->fingerprint = fingerprint;
	pthread_mutex_lock(&b->mutex);
	b->topology_changes++;
	pthread_mutex_unlock(&b->mutex);
}

/* NULL when no routes fit; why, is in `last_error` and in OpenSM's log. */
struct install *plans_choose(struct bridge *b)
{
	struct routes *newest, *good;
	struct install *chosen = NULL;
	struct reason why = {""};
	osm_switch_t **sw = NULL;
	struct live live;

	take_changed_file(b);
	pthread_mutex_lock(&b->mutex);
	b->building = b->asked;
	newest = routes_hold(b->newest);
	good = routes_hold(b->good);
	why = b->file_problem;
	pthread_mutex_unlock(&b->mutex);

	if (live_from_osm(&live, &sw, b->osm, &why)) {
		remember_topology(b, &live);
		if (newest)
			chosen = try(&live, sw, newest, &why);
		if (!chosen && good && good != newest) {
			struct reason old;

			chosen = try(&live, sw, good, &old);
		}
	}
	if (!chosen) {
		live_free(&live);
		free(sw);
	}
	if (*why.text)
		BRIDGE_LOG(b, OSM_LOG_ERROR, "%s%s\n", why.text,
			   chosen ? "; an older generation of routes is used" :
				    "; the next routing engine takes over");
	pthread_mutex_lock(&b->mutex);
	b->last_error = why;
	pthread_mutex_unlock(&b->mutex);
	routes_drop(newest);
	routes_drop(good);
	return chosen;
}
