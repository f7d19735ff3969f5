/*
 * A step on a node: its tasks find what the agent answered when the job started, and what the site's
 * file says. A job that named its traffic may get routes of its own only after its start, so its steps
 * ask again; but only if the agent answered at the start, or a silent one would cost time twice.
 */
#include <string.h>

#include "hooks.h"

static void set(spank_t spank, const struct arguments *arguments, const struct environment *environment)
{
	for (unsigned i = 0; i < environment->count; i++) {
		const struct variable *v = &environment->variable[i];

		if (!environment_allows(arguments->allow, v->name))
			SAY_ERROR("%s is not on the list of argument allow, and not set", v->name);
		else if (spank_setenv(spank, v->name, v->value, 0) == ESPANK_SUCCESS && arguments->debug)
			SAY("tasks have %s=%s", v->name, v->value);
	}
}

void step_set_environment(spank_t spank, int count, char **words)
{
	struct environment environment = {.count = 0};
	struct message message = {.event = "hint"};
	char traffic[TRAFFIC_SIZE];
	struct arguments arguments;

	tell_read(&arguments, count, words);
	if (!tell_about(spank, &message))
		return;
	option_given(spank, traffic);
	message.traffic = traffic;
	if (environment_kept(&environment, arguments.state, message.job) && !environment.count && *traffic &&
	    strcmp(traffic, "none"))
		tell(&arguments, &message, &environment);
	set(spank, &arguments, &environment);
	environment.count = 0;
	if (environment_read(&environment, arguments.env_file, message.job))
		set(spank, &arguments, &environment);
}
