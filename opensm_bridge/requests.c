/* The requests of the plugin's socket: one line in, one line of JSON out (README.md). */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bridge.h"
#include "notice.h"
#include "number.h"

static const char *escaped(char *to, size_t room, const char *from)
{
	size_t at = 0;

	for (; *from && at + 7 < room; from++) {
		const unsigned char c = (unsigned char)*from;

		if (c == '"' || c == '\\')
			at += (size_t)snprintf(to + at, room - at, "\\%c", c);
		else if (c < 0x20 || c > 0x7e) /* node descriptions may contain any byte */
			at += (size_t)snprintf(to + at, room - at, "\\u%04x", c);
		else
			to[at++] = (char)c;
	}
	to[at] = '\0';
	return to;
}

static const char *sm_state(const struct bridge *b)
{
	switch (b->osm->subn.sm_state) {
	case IB_SMINFO_STATE_MASTER:
		return "master";
	case IB_SMINFO_STATE_STANDBY:
		return "standby";
	case IB_SMINFO_STATE_DISCOVERING:
		return "discovering";
	default:
		return "not-active";
	}
}

/* Takes no lock of OpenSM's: `status` must be answered while a slow engine computes for minutes. */
static bool answer_status(struct bridge *b, char *json, size_t room)
{
	const struct routes *loaded;
	char error[1024];

	pthread_mutex_lock(&b->mutex);
	loaded = b->load_routes ? b->load_routes : b->last_good;
	snprintf(json, room,
		 "{\"protocol\":2,\"plugin_version\":\"%s\",\"opensm_version\":\"%s\",\"pid\":%d,"
		 "\"sm_state\":\"%s\",\"state\":\"%s\",\"last_error\":\"%s\","
		 "\"engine_in_force\":\"%s\",\"routes_engine\":\"%s\","
		 "\"generation_in_force\":%ju,\"generation_loaded\":%ju,"
		 "\"lmc\":%u,\"switches\":%u,\"hca_ports\":%u,\"lanes\":%u,"
		 "\"amendments\":%u,\"amended_entries\":%u,\"repair_drops\":%s,\"repair_ms\":%.3f,"
		 "\"repairs_refused\":%u,"
		 "\"unknown_terminals\":%u,\"vanished_terminals\":%u,\"unconfirmed_switches\":%u,"
		 "\"unconfirmed_lft_blocks\":%u,\"unconfirmed_sl2vl_ports\":%u,"
		 "\"unconfirmed_sl2vl_tables\":%u,\"sl2vl_tables_sent\":%lu,"
		 "\"head_of_queue_seconds\":%.9g,\"listening\":%u,\"repair_calls\":%u,\"repair_calls_answered\":%u,"
		 "\"heavy_sweeps\":%lu,\"topology_changes\":%ju,\"routings\":%ju,"
		 "\"lft_blocks_confirmed\":%lu,\"last_build_unix\":%jd}",
		 SAR_PLUGIN_VERSION, b->osm->osm_version, (int)getpid(), sm_state(b),
		 state_name(b),
		 escaped(error, sizeof(error), b->last_error.text),
		 b->routed ? b->engine_in_force : "none", b->routes_engine,
		 (uintmax_t)b->generation_in_force,
		 (uintmax_t)(loaded ? loaded->generation : 0), b->osm->subn.opt.lmc,
		 b->switches, b->hca_ports, b->lanes, b->amendments, b->amended_entries,
		 b->repair_drops ? "true" : "false", b->repair_milliseconds, b->repairs_refused,
		 b->unknown, b->vanished, b->unconfirmed,
		 b->unconfirmed_blocks, b->unconfirmed_ports, b->unconfirmed_tables,
		 atomic_load(&b->sl2vl_tables), tables_head_of_queue(&b->osm->subn.opt),
		 b->listening, b->calls, b->calls_answered, atomic_load(&b->heavy_sweeps), (uintmax_t)b->topology_changes,
		 (uintmax_t)b->routings, atomic_load(&b->lft_blocks), (intmax_t)b->built_at);
	pthread_mutex_unlock(&b->mutex);
	return true;
}

static void answer_refusal(const struct reason *why, char *json, size_t room)
{
	char error[1024];

	snprintf(json, room, "{\"ok\":false,\"code\":\"%s\",\"error\":\"%s\"}",
		 why->code ? why->code : "other", escaped(error, sizeof(error), why->text));
}

/* Whether it is "any" or a digest as `dump` answers it. */
static bool is_digest(const char *word)
{
	return !strcmp(word, "any") ||
	       (strlen(word) == 16 && strspn(word, "0123456789abcdef") == 16);
}

/* The answers to requests that may be refused: false and `why`. */
static bool answer_load(struct bridge *b, const char *arguments, char *json, size_t room, struct reason *why)
{
	uint64_t generation;
	const char *end = number_parse(arguments, &generation);

	if (!end || *end != ' ' || !generation || !is_digest(end + 1))
		REFUSE("load needs the generation of routes.next, a number above 0, and the digest that dump answered, or any");
	if (!reload(b, generation, end + 1, why))
		return false;
	pthread_mutex_lock(&b->mutex);
	snprintf(json, room, "{\"ok\":true,\"engine_in_force\":\"%s\",\"generation_in_force\":%ju,\"unknown_terminals\":%u}",
		 b->engine_in_force, (uintmax_t)generation, b->unknown);
	pthread_mutex_unlock(&b->mutex);
	return true;
}

static bool answer_file(struct bridge *b, write_for_agent *write, const char *path, char *json, size_t room, struct reason *why)
{
	char more[MORE_SIZE], shown[2048];

	if (!write(b, more, why))
		return false;
	snprintf(json, room, "{\"ok\":true,\"path\":\"%s\",%s}", escaped(shown, sizeof(shown), path), more);
	return true;
}

static bool answer_decline(struct bridge *b, const char *arguments, char *json, size_t room, struct reason *why)
{
	uint64_t number;

	if (!number_within(arguments, 1, UINT32_MAX, &number) || !agent_call_decline(b, (unsigned)number))
		REFUSE("no routing waits in call %.20s", arguments);
	snprintf(json, room, "{\"ok\":true}");
	return true;
}

static bool answer_notice(struct bridge *b, const char *arguments, char *json, size_t room, struct reason *why)
{
	struct notice notice;
	unsigned subscribed;

	if (!notice_parse(&notice, arguments, why) || !notice_raise(b, &notice, &subscribed, why))
		return false;
	snprintf(json, room, "{\"ok\":true,\"subscribed\":%u}", subscribed);
	return true;
}

static bool starts(const char *request, const char *word, const char **rest)
{
	*rest = request + strlen(word);
	return !strncmp(request, word, strlen(word));
}

void request_answer(struct bridge *b, const char *request, char *json, size_t room)
{
	struct reason why = {.text = "unknown request; valid are status, load GENERATION PROVED_FROM, dump, "
			     "fabric, await CALL, decline CALL, and notice unpath|repath UPDATE GENERATION"};
	const struct options *o = &b->options;
	const char *rest;
	bool good = false;

	if (!strcmp(request, "status"))
		good = answer_status(b, json, room);
	else if (!strcmp(request, "dump"))
		good = answer_file(b, dump_in_force, o->dump_path, json, room, &why);
	else if (!strcmp(request, "fabric"))
		good = answer_file(b, fabric_write, o->fabric_path, json, room, &why);
	else if (starts(request, "load ", &rest))
		good = answer_load(b, rest, json, room, &why);
	else if (starts(request, "decline ", &rest))
		good = answer_decline(b, rest, json, room, &why);
	else if (starts(request, "notice ", &rest))
		good = answer_notice(b, rest, json, room, &why);
	if (!good)
		answer_refusal(&why, json, room);
}
