/* The requests of the plugin's socket: one line in, one line of JSON out (README.md). */
#include <stdlib.h>
#include <string.h>

#include "bridge.h"
#include "json.h"
#include "notice.h"
#include "number.h"

/* Takes no lock of OpenSM's: `status` must be answered while a slow engine computes for minutes. */
static bool answer_status(struct bridge *b, char *json, size_t room)
{
	pthread_mutex_lock(&b->shared.lock);
	status_answer(b, json, room);
	pthread_mutex_unlock(&b->shared.lock);
	return true;
}

static void answer_refusal(const struct reason *why, char *json, size_t room)
{
	char error[1024];

	snprintf(json, room, "{\"ok\":false,\"code\":\"%s\",\"error\":\"%s\"}",
		 why->code ? why->code : "other", json_escaped(error, sizeof(error), why->text));
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
	pthread_mutex_lock(&b->shared.lock);
	snprintf(json, room, "{\"ok\":true,\"engine_in_force\":\"%s\",\"generation_in_force\":%ju,\"unknown_terminals\":%u}",
		 b->shared.engine_in_force, (uintmax_t)generation, b->shared.unknown);
	pthread_mutex_unlock(&b->shared.lock);
	return true;
}

static bool answer_file(struct bridge *b, write_for_agent *write, const char *path, char *json, size_t room, struct reason *why)
{
	char more[MORE_SIZE], shown[2048];

	if (!write(b, more, why))
		return false;
	snprintf(json, room, "{\"ok\":true,\"path\":\"%s\",%s}", json_escaped(shown, sizeof(shown), path), more);
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
