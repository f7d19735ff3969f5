/* The inputs that every hook has in common: the arguments of plugstack.conf, and the job that Slurm is about. */
#include <sys/types.h>

#include "hooks.h"

void read_arguments(struct arguments *arguments, int ac, char **av)
{
	struct reason why;

	arguments_default(arguments);
	for (int i = 0; i < ac; i++)
		if (!arguments_take(arguments, av[i], &why))
			log_error("plugstack.conf: %s", why.text);
}

bool read_job(spank_t spank, struct message *message)
{
	uid_t user;

	message->user = spank_get_item(spank, S_JOB_UID, &user) == ESPANK_SUCCESS ? (int64_t)user : -1;
	return spank_get_item(spank, S_JOB_ID, &message->job) == ESPANK_SUCCESS;
}
