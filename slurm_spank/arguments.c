/* An invalid argument must not keep a job from running: the caller logs the reason and goes on. */
#include "arguments.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "ask_agent.h"

static const struct {
	const char *key;
	size_t offset, room;
	bool path;
} texts[] = {
#define TEXT(name, path) {#name, offsetof(struct arguments, name), sizeof(((struct arguments *)0)->name), path}
	TEXT(agent, false),   TEXT(munge_socket, true), TEXT(state, true),
	TEXT(env_file, true), TEXT(allow, false),	TEXT(agent_user, false),
};

void arguments_default(struct arguments *a)
{
	*a = (struct arguments){
		.agent_user = AGENT_USER,
		.state = "/run/sar-spank",
		.allow = "UCX_IB_LID_PATH_BITS:UCX_IB_NUM_PATHS",
		.timeout = DEFAULT_TIMEOUT,
		.key_timeout = DEFAULT_KEY_TIMEOUT,
	};
}

static bool is_address(const char *text)
{
	const char *port = strrchr(text, ':');

	/* The path of a Unix socket must fit into sun_path. */
	return *text == '/' ? strlen(text) < 108 : port && port != text && port[1];
}

static bool set_milliseconds(unsigned *to, const char *key, const char *value, unsigned least, unsigned most,
			     struct reason *why)
{
	char *end;
	const unsigned long milliseconds = strtoul(value, &end, 10);

	if (*value < '0' || *value > '9' || *end || milliseconds < least || milliseconds > most)
		REFUSE("argument %s must be %u to %u milliseconds, not \"%.60s\"", key, least, most, value);
	*to = (unsigned)milliseconds;
	return true;
}

bool arguments_take(struct arguments *a, const char *word, struct reason *why)
{
	const char *value = strchr(word, '=');
	const size_t key = value ? (size_t)(value++ - word) : 0;

	if (!key)
		REFUSE("argument \"%.60s\" is not of the form key=value", word);
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		if (strlen(texts[i].key) != key || memcmp(texts[i].key, word, key))
			continue;
		if (strlen(value) >= texts[i].room)
			REFUSE("argument %s is longer than %zu characters", texts[i].key, texts[i].room - 1);
		if (texts[i].path && *value && *value != '/')
			REFUSE("argument %s must be an absolute path, not \"%.60s\"", texts[i].key, value);
		if (!strcmp(texts[i].key, "agent") && !is_address(value))
			REFUSE("argument agent is neither HOST:PORT nor a path shorter than 108 characters: \"%.60s\"",
			       value);
		strcpy((char *)a + texts[i].offset, value);
		return true;
	}
	if (key == 7 && !memcmp(word, "timeout", key))
		return set_milliseconds(&a->timeout, "timeout", value, LEAST_TIMEOUT, MOST_TIMEOUT, why);
	if (key == 11 && !memcmp(word, "key_timeout", key))
		return set_milliseconds(&a->key_timeout, "key_timeout", value, 0, MOST_KEY_TIMEOUT, why);
	if (key == 5 && !memcmp(word, "debug", key) && (!strcmp(value, "0") || !strcmp(value, "1"))) {
		a->debug = *value == '1';
		return true;
	}
	REFUSE("unknown argument \"%.60s\"; valid are agent, agent_user, munge_socket, state, env_file, allow, timeout, "
	       "key_timeout and debug (0 or 1)",
	       word);
}