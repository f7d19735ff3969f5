/*
 * A step on a node: sets the tasks' environment from the agent's answer to the start of the job, and from the site's
 * file. A job that named its traffic may get its routing key only after its start, so its steps ask again; but only if
 * the agent answered at the start, because a silent agent would cost time twice. The environment of tasks cannot change
 * once they run, so the step waits while the routes are being made: for up to `key_timeout`, and it asks only as often
 * as the agent says, because every node of the job asks.
 */
#include <limits.h>
#include <poll.h>
#include <string.h>

#include "connection.h"
#include "environment_file.h"
#include "hooks.h"
#include "report_event.h"

/* Milliseconds for each message of a step that waits for its routing key. */
#define WAITING_TIMEOUT 500

static void set(spank_t spank, const struct arguments *arguments, const struct environment *environment)
{
	for (unsigned i = 0; i < environment->count; i++) {
		const struct variable *v = &environment->variable[i];

		if (!environment_allows(arguments->allow, v->name))
			log_error("%s is not in the list of argument allow, so tasks do not get it", v->name);
		else if (spank_setenv(spank, v->name, v->value, 0) == ESPANK_SUCCESS && arguments->debug)
			log_info("tasks get %s=%s", v->name, v->value);
	}
}

static void ask_for_key(struct arguments arguments, struct message *message, struct environment *environment)
{
	const int64_t end = clock_ms() + arguments.key_timeout;
	unsigned tries = 3; /* the agent answered the start; now the machine may be busy with all the steps */
	int wait;

	while ((wait = report_event(&arguments, message, environment)) && tries) {
		const int64_t left = end - clock_ms() - LEAST_TIMEOUT;

		if (left <= 0)
			break;
		if (wait < 0)
			tries--;
		else
			tries = UINT_MAX; /* the agent is working on the key */
		arguments.timeout = left < WAITING_TIMEOUT ? (unsigned)left + LEAST_TIMEOUT : WAITING_TIMEOUT;
		poll(NULL, 0, wait < 0 ? 0 : (int)(wait < left ? wait : left));
	}
	if (wait)
		log_info("job %u had no routing key within %u ms; its tasks start without one", message->job,
			 arguments.key_timeout);
}

static const char *get_variable(spank_t spank, const char *name, char *text, int room)
{
	return spank_getenv(spank, name, text, room) == ESPANK_SUCCESS ? text : NULL;
}

void step_set_environment(spank_t spank, int ac, char **av)
{
	struct environment environment = {.count = 0};
	struct message message = {.event = "hint"};
	char traffic[TRAFFIC_SIZE];
	struct arguments arguments;
	char nodes[2048], tasks[512];

	read_arguments(&arguments, ac, av);
	if (!read_job(spank, &message))
		return;
	option_given(spank, traffic);
	message.traffic = traffic;
	message.nodes = get_variable(spank, "SLURM_STEP_NODELIST", nodes, sizeof(nodes));
	message.tasks = get_variable(spank, "SLURM_STEP_TASKS_PER_NODE", tasks, sizeof(tasks));
	if (!message.tasks)
		message.tasks = get_variable(spank, "SLURM_TASKS_PER_NODE", tasks, sizeof(tasks));
	if (environment_load(&environment, arguments.state, message.job) && !environment.count && *traffic &&
	    strcmp(traffic, "none") && *arguments.agent)
		ask_for_key(arguments, &message, &environment);
	set(spank, &arguments, &environment);
	environment.count = 0;
	if (environment_read_site_file(&environment, arguments.env_file, message.job))
		set(spank, &arguments, &environment);
}
