/*
 * Chooses the routes to install: those of a load, in the one routing that serves it; else those that were in force last;
 * else the next engine in OpenSM's list takes over. Routes that do not fit the fabric are dropped: they are never tried
 * again in a later routing that nobody watches.
 *
 * A load is valid only for the tables that it was proved from. While it waited for OpenSM's lock, another engine may have
 * changed the tables, or OpenSM the LIDs. So the digest of the switches' tables is compared here, while the lock is held
 * and nothing can change.
 *
 * Without a load, the plugin reads a file (routes.sar, which the agent puts in place once its routes are confirmed) only
 * at OpenSM's first routing and at its first one as master. It refuses a file that is older than what this process has had
 * in force. If another subnet manager was master since, the file counts only where the switches have its routes (read_back.c).
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "bridge.h"
#include "certificate.h"

/* Reads a file; NULL and `why` unless it is valid and its generation is within these bounds. */
static struct routes *read_file(const char *path, uint64_t least, uint64_t most, struct reason *why)
{
	struct reason inner = {.text = ""};
	struct routes *r = routes_read(path, why);

	if (!r)
		return why->code = "invalid", NULL;
	if (r->had)
		REASON(&inner, "is invalid: it is a dump of tables that are not confirmed");
	else if (r->generation > most || (r->generation < least && least == most))
		REASON(&inner, "holds generation %ju, not %ju", (uintmax_t)r->generation, (uintmax_t)least);
	else if (r->generation < least)
		REASON(&inner, "holds generation %ju, and %ju has been in force already", (uintmax_t)r->generation,
		       (uintmax_t)least);
	else if (!r->numbers || certificate_holds(r, &inner))
		return r;
	REASON_OF(why, "invalid", "%.200s %.280s", path, inner.text);
	routes_drop(r);
	return NULL;
}

struct routes *plans_read_next(struct bridge *b, uint64_t generation, struct reason *why)
{
	return read_file(b->options.next_path, generation, generation ? generation : UINT64_MAX, why);
}

struct choice {
	struct install *install; /* with the fabric, if it was `read`, and its tables, if routes `fit` */
	bool read, fit;
	struct own_task task;
};

static void add_to(struct reason *why, const char *more)
{
	const size_t length = strlen(why->text);
	const int left = (int)(sizeof(why->text) - length);

	snprintf(why->text + length, (size_t)left, "%s%.*s", length ? "; " : "", left, more);
}

static void log_repair(struct bridge *b, const struct tables *t)
{
	const struct routes *r = t->routes;
	const struct amendment *a = r->amended;

	BRIDGE_LOG(b, OSM_LOG_INFO, "generation %ju was repaired: %u entries changed in %.1f ms, repair %u since it was "
		   "loaded%s\n", (uintmax_t)r->generation, a->entries, a->milliseconds, a->repairs,
		   t->drops ? "; packets of some hosts are dropped until the next one, which follows at once" :
		   a->later ? "; another one follows" : "");
}

/* Routes that were in force: if they have a certificate in one lane, they are repaired first. */
static void try_own(struct bridge *b, struct choice *c, struct routes *routes, bool assumed, struct reason *why)
{
	struct tables *tables = &c->install->tables;
	struct reason unrepaired, former;

	if (!routes || c->fit)
		return;
	c->task.assumed = assumed;
	c->fit = own_choose(tables, &c->task, routes, &unrepaired, why);
	if (c->fit && tables->routes != routes)
		log_repair(b, tables);
	if (!*unrepaired.text)
		return;
	pthread_mutex_lock(&b->shared.lock);
	b->shared.repairs_refused++;
	pthread_mutex_unlock(&b->shared.lock);
	former = *why;
	REASON_OF(why, "stale", "a repair of generation %ju is not installed: %.400s", (uintmax_t)routes->generation, unrepaired.text);
	if (*former.text)
		add_to(why, former.text);
}

static void remember_topology(struct bridge *b, const struct live *live)
{
	const uint64_t fingerprint = live_fingerprint(live);

	if (fingerprint == b->routing.fingerprint)
		return;
	b->routing.fingerprint = fingerprint;
	pthread_mutex_lock(&b->shared.lock);
	b->shared.topology_changes++;
	pthread_mutex_unlock(&b->shared.lock);
}

/* Chooses the routes of a load if the switches still have the tables that it was proved from, and they fit the fabric. */
static void try_load(struct bridge *b, struct choice *c, struct routes *routes, const char *proved_from, struct reason *why)
{
	char digest[17];

	pthread_mutex_lock(&b->tables.lock);
	snprintf(digest, sizeof(digest), "%016" PRIx64, tables_digest(b, &c->install->live));
	if (strcmp(proved_from, "any") && strcmp(proved_from, digest))
		REASON_OF(why, "changed", "the tables in force are not those that the routes were proved from (digest "
			  "%s, by engine %.31s, instead of %s): dump them again", digest, b->tables.known_engine, proved_from);
	pthread_mutex_unlock(&b->tables.lock);
	c->fit = !*why->text && own_load(&c->install->tables, &c->task, routes, why);
}

/* The routes to choose from in this routing. */
struct offer {
	struct routes *load, *file, *last_good;
	char proved_from[17];
	bool take_file;
	bool back; /* this process was master before, and another subnet manager since: its file may be older than the tables (read_back.c) */
};

/* OpenSM does not report every way of becoming the master, but this flag is set until the first sweep is over. */
static void notice_takeover(struct bridge *b)
{
	if (!b->osm->subn.first_time_master_sweep || b->routing.taken_over)
		return;
	b->routing.taken_over = true;
	pthread_mutex_lock(&b->tables.lock);
	tables_forget(b);
	pthread_mutex_unlock(&b->tables.lock);
	pthread_mutex_lock(&b->shared.lock);
	b->shared.take_file = true;
	pthread_mutex_unlock(&b->shared.lock);
}

static void take_offer(struct bridge *b, struct offer *o, struct reason *file_problem)
{
	uint64_t highest;

	pthread_mutex_lock(&b->shared.lock);
	b->shared.phase = ROUTING;
	b->shared.building = b->shared.asked;
	b->shared.follow_at = 0;
	*o = (struct offer){.load = b->shared.load_routes, .last_good = routes_hold(b->shared.last_good), .take_file = b->shared.take_file};
	memcpy(o->proved_from, b->shared.proved_from, sizeof(o->proved_from));
	b->shared.load_routes = NULL;
	b->shared.take_file = false;
	highest = b->shared.highest;
	o->back = o->take_file && highest;
	*file_problem = b->shared.file_problem;
	pthread_mutex_unlock(&b->shared.lock);
	if (!o->take_file)
		return;
	*file_problem = (struct reason){.text = ""};
	o->file = read_file(b->options.routes_path, highest, UINT64_MAX, file_problem);
}

/* As many as there are, and whole blocks. */
static uint32_t lids_of(const struct live *live)
{
	uint32_t last = 0;

	for (uint32_t d = 0; d < live_destinations(live); d++)
		if (live_destination(live, d).high > last)
			last = live_destination(live, d).high;
	return (last / KNOWN_BLOCK + 1) * KNOWN_BLOCK;
}

/* The caller holds OpenSM's lock. Sets `c->fit`; `load` and `own` receive why the routes of the load, or the plugin's
 * own, were refused. */
static void choose(struct bridge *b, struct choice *c, const struct offer *o, struct reason *load,
		   struct reason *own)
{
	struct reason *why = o->load ? load : own;
	struct live *live;

	pthread_mutex_lock(&b->tables.lock);
	tables_look(b, LOOK_ROUTING);
	pthread_mutex_unlock(&b->tables.lock);
	c->read = c->install && live_from_osm(&c->install->live, &c->install->sw, b->osm, why);
	if (!c->read)
		return;
	live = &c->install->live;
	pthread_mutex_lock(&b->tables.lock); /* only threads that hold OpenSM's lock change what is known */
	c->task = (struct own_task){.live = live, .known = tables_known(b, live), .lids = lids_of(live), .held = o->back,
				    .ours = !strcmp(b->tables.known_engine, SAR_ENGINE)};
	if (c->task.lids <= b->tables.known.lids)
		c->task.lids = b->tables.known.lids;
	else
		c->task.known = NULL; /* cannot happen, but for lack of memory */
	c->task.settled = b->routing.was_settled =
		follow_settled(c->task.known, c->task.ours && b->routing.in_force ? b->routing.in_force->tables.put_off_count : 0);
	pthread_mutex_unlock(&b->tables.lock);
	remember_topology(b, live);
	if (o->load)
		try_load(b, c, o->load, o->proved_from, load);
	/* The agent keeps in the file what is in force, and no other engine's routes would be proved either. */
	try_own(b, c, o->file, !o->back, own);
	try_own(b, c, o->last_good, false, own);
}

/* Where no repair of the routes in force serves: waits for the agent's. `own` is why a repair does not serve. */
static void call_agent(struct bridge *b, struct choice *c, struct reason *own)
{
	struct reason not_called = {.text = ""}, load;
	struct routes *offered;
	char proved_from[17], late[80];
	bool declined;
	double took;

	if (!agent_call_begin(b, &not_called)) {
		add_to(own, not_called.text);
		return;
	}
	BRIDGE_LOG(b, OSM_LOG_INFO, "%s; the agent is asked, for up to %u s\n", own->text, b->options.repair_wait);
	while (!c->fit && (offered = agent_call_wait(b, proved_from, sizeof(proved_from)))) {
		load = (struct reason){.text = ""};
		try_load(b, c, offered, proved_from, &load);
		if (!c->fit)
			agent_call_refuse(b, &load);
		routes_drop(offered);
	}
	took = agent_call_end(b, &declined);
	if (c->fit) {
		*own = (struct reason){.text = ""};
		pthread_mutex_lock(&b->shared.lock);
		b->shared.calls_answered++;
		pthread_mutex_unlock(&b->shared.lock);
		BRIDGE_LOG(b, OSM_LOG_INFO, "the agent answered after %.2f s with generation %ju\n", took,
			   (uintmax_t)c->install->tables.routes->generation);
		return;
	}
	snprintf(late, sizeof(late), "the agent was asked and %s %.1f s",
		 declined ? "has no routes either, after" : "sent no routes within", took);
	add_to(own, late);
}

/*
 * Another subnet manager was master, and the switches do not have what the file had. If the agent has no routes, it may at least have
 * copied the other one's meanwhile. Else the routes of the file return, if need be unproved: the next engine's would not be proved
 * either.
 */
static void take_back(struct bridge *b, struct choice *c, const struct offer *o, struct reason *own)
{
	struct reason problem = {.text = ""}, ours;
	struct routes *file = read_file(b->options.routes_path, o->file->generation, UINT64_MAX, &problem);

	ours = *own;
	try_own(b, c, file, false, own);
	if (!c->fit) { /* it may still be proved that it mixes with what the switches have */
		c->task.held = false;
		try_own(b, c, file ? file : o->file, false, own);
		if (!c->fit) {
			c->task.known = NULL;
			try_own(b, c, file ? file : o->file, true, own);
		}
		if (c->fit)
			REASON_OF(own, "unproved", "generation %ju is put in force%s although another subnet manager was master: %.400s",
				  (uintmax_t)c->install->tables.routes->generation, c->task.known ? "" : " unproved", ours.text);
	}
	routes_drop(file);
}

/* Returns NULL if no routes fit; the reason is in `last_error` and in OpenSM's log. */
struct install *plans_choose(struct bridge *b)
{
	struct reason load = {.text = ""}, own = {.text = ""}, file;
	struct choice c = {.install = calloc(1, sizeof(*c.install))};
	const struct reason *why;
	struct offer o;

	notice_takeover(b);
	take_offer(b, &o, &file);
	if (!c.install)
		REASON(&own, "no memory to install routes");
	choose(b, &c, &o, &load, &own);
	if (!c.fit && c.read && o.last_good && !o.load)
		call_agent(b, &c, &own);
	if (!c.fit && c.read && o.back && o.file)
		take_back(b, &c, &o, &own);
	if (!c.fit) {
		install_free(c.install);
		c.install = NULL;
	}
	if (o.take_file && *file.text)
		BRIDGE_LOG(b, OSM_LOG_ERROR, "%s\n", file.text);
	if (!c.fit && !o.last_good && (o.load || o.file)) /* the routes are dropped; keep the reason */
		file = *load.text ? load : own;
	why = *load.text ? &load : *own.text ? &own : c.fit ? NULL : &file;
	if (why && *why->text)
		BRIDGE_LOG(b, OSM_LOG_ERROR, "%s%s\n", why->text, !c.fit ? "; the next routing engine takes over" :
			   o.back && !o.load ? "" : "; the previous routes stay in use");
	pthread_mutex_lock(&b->shared.lock);
	b->shared.file_problem = file;
	if (o.load)
		b->shared.load_problem = load;
	b->shared.last_error = why ? *why : (struct reason){.text = ""};
	pthread_mutex_unlock(&b->shared.lock);
	routes_drop(o.load);
	routes_drop(o.file);
	routes_drop(o.last_good);
	return c.install;
}
