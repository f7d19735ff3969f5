/*
 * The prolog and the epilog of a node. spank_job_control_getenv() must not be called here: in Slurm 22.05.8 it
 * crashes, and the node is drained. The option itself and Slurm's environment provide what is needed.
 */
#include <stdlib.h>
#include <string.h>

#include "environment_file.h"
#include "hooks.h"
#include "report_event.h"

static void report(spank_t spank, int ac, char **av, const char *event)
{
	char traffic[TRAFFIC_SIZE];
	struct arguments arguments;
	struct environment unused = {.count = 0};
	struct message message = {.event = event, .traffic = traffic, .nodes = getenv("SLURM_NODELIST")};

	read_arguments(&arguments, ac, av);
	if (!read_job(spank, &message))
		return;
	if (!message.nodes)
		message.nodes = getenv("SLURM_JOB_NODELIST");
	option_given(spank, traffic);
	environment_forget(arguments.state, message.job, !strcmp(event, "start"));
	if (*arguments.agent)
		(void)report_event(&arguments, &message, &unused);
}

void job_starts(spank_t spank, int ac, char **av)
{
	report(spank, ac, av, "start");
}

void job_ends(spank_t spank, int ac, char **av)
{
	report(spank, ac, av, "end");
}
