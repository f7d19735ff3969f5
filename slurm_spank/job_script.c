/*
 * Prolog and epilog of a node. Never spank_job_control_getenv here: in Slurm 22.05.8 it crashes, and
 * the node is drained. The option itself, and Slurm's environment, say what is needed.
 */
#include <stdlib.h>

#include "hooks.h"

static void speak(spank_t spank, int count, char **words, const char *event)
{
	char traffic[TRAFFIC_SIZE];
	struct arguments arguments;
	struct environment environment = {.count = 0};
	struct message message = {.event = event, .traffic = traffic, .nodes = getenv("SLURM_NODELIST")};

	tell_read(&arguments, count, words);
	if (!tell_about(spank, &message))
		return;
	if (!message.nodes)
		message.nodes = getenv("SLURM_JOB_NODELIST");
	option_given(spank, traffic);
	environment_forget(arguments.state, message.job); /* also of another job of that number */
	(void)tell(&arguments, &message, &environment);
}

void job_starts(spank_t spank, int count, char **words)
{
	speak(spank, count, words, "start");
}

void job_ends(spank_t spank, int count, char **words)
{
	speak(spank, count, words, "end");
}
