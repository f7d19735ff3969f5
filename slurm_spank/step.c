/*
 * A step on a node: its tasks find what the agent answered when the job started, and what the site's
 * file says. A job that named its traffic may get routes of its own only after its start, so its steps
 * ask again; but only if the agent answered at the start, or a silent one would cost time twice. While
 * the routes are being made a step waits, since its tasks cannot be told later: not longer than
 * `key_timeout`, and as seldom as the agent asks, whom every node of the job asks.
 */
#include <limits.h>
#include <poll.h>
#include <string.h>

#include "hooks.h"
#include "stream.h"

/* Milliseconds for a message of a step that waits anyway. */
#define PATIENT_TIMEOUT 500

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

static void ask(struct arguments arguments, struct message *message, struct environment *environment)
{
	const int64_t end = clock_ms() + arguments.key_timeout;
	unsigned tries = 3; /* of an agent that answered the start; the machine may be busy with all the steps */
	int wait;

	while ((wait = tell(&arguments, message, environment)) && tries) {
		const int64_t left = end - clock_ms() - LEAST_TIMEOUT;

		if (left <= 0)
			break;
		if (wait < 0)
			tries--;
		else
			tries = UINT_MAX; /* it is there, and we shall be told */
		arguments.timeout = left < PATIENT_TIMEOUT ? (unsigned)left + LEAST_TIMEOUT : PATIENT_TIMEOUT;
		poll(NULL, 0, wait < 0 ? 0 : (int)(wait < left ? wait : left));
	}
	if (wait)
		SAY("job %u has no routing key within %u ms, its tasks start without", message->job,
		    arguments.key_timeout);
}

static const char *variable_of(spank_t spank, const char *name, char *text, int room)
{
	return spank_getenv(spank, name, text, room) == ESPANK_SUCCESS ? text : NULL;
}

void step_set_environment(spank_t spank, int count, char **words)
{
	struct environment environment = {.count = 0};
	struct message message = {.event = "hint"};
	char traffic[TRAFFIC_SIZE];
	struct arguments arguments;
	char nodes[2048], tasks[512];

	tell_read(&arguments, count, words);
	if (!tell_about(spank, &message))
		return;
	option_given(spank, traffic);
	message.traffic = traffic;
	message.nodes = variable_of(spank, "SLURM_STEP_NODELIST", nodes, sizeof(nodes));
	message.tasks = variable_of(spank, "SLURM_STEP_TASKS_PER_NODE", tasks, sizeof(tasks));
	if (!message.tasks)
		message.tasks = variable_of(spank, "SLURM_TASKS_PER_NODE", tasks, sizeof(tasks));
	if (environment_kept(&environment, arguments.state, message.job) && !environment.count && *traffic &&
	    strcmp(traffic, "none"))
		ask(arguments, &message, &environment);
	set(spank, &arguments, &environment);
	environment.count = 0;
	if (environment_read(&environment, arguments.env_file, message.job))
		set(spank, &arguments, &environment);
}
