/* An invalid argument must not keep a job from running: the caller logs the reason and goes on. */
#include "arguments.h"

#include <string.h>

#include "ask_agent.h"
#include "settings.h"

#define TEXT(name, kind) {#name, offsetof(struct arguments, name), kind, 0, sizeof(((struct arguments *)0)->name) - 1, ""}
#define NUMBER(name, least, most, unit) {#name, offsetof(struct arguments, name), SETTING_NUMBER, least, most, unit}
static const struct setting all[] = {
	TEXT(agent, SETTING_TEXT), TEXT(agent_user, SETTING_TEXT), TEXT(munge_socket, SETTING_PATH), TEXT(state, SETTING_PATH),
	TEXT(env_file, SETTING_PATH), TEXT(allow, SETTING_TEXT),
	NUMBER(timeout, LEAST_TIMEOUT, MOST_TIMEOUT, " milliseconds"),
	NUMBER(key_timeout, 0, MOST_KEY_TIMEOUT, " milliseconds"),
	NUMBER(debug, 0, 1, ""),
};
static const struct settings settings = {"argument", all, sizeof(all) / sizeof(*all)};

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

bool arguments_take(struct arguments *a, const char *word, struct reason *why)
{
	if (!strncmp(word, "agent=", 6) && !is_address(word + 6))
		REFUSE("argument agent is neither HOST:PORT nor a path shorter than 108 characters: \"%.60s\"", word + 6);
	return settings_take(&settings, a, word, why);
}
