/* What the plugin does in each of Slurm's contexts; sar_spank.c calls these functions. */
#pragma once
#include <slurm/spank.h>

#include "arguments.h"
#include "log.h"
#include "message.h"
#include "traffic.h"

/* option.c: --sar-traffic, in every context. */
int option_register(spank_t spank);
/* Copies the job's pattern to `traffic`; "" if the option was not given. */
void option_given(spank_t spank, char traffic[TRAFFIC_SIZE]);

/* submit.c: in srun, sbatch, salloc. */
void submit_set_job_environment(spank_t spank);
/* job_script.c: as root, beside the prolog and the epilog of a node. */
void job_starts(spank_t spank, int ac, char **av);
void job_ends(spank_t spank, int ac, char **av);
/* step.c: as root in slurmstepd, before the tasks start. */
void step_set_environment(spank_t spank, int ac, char **av);

/* hook_inputs.c: the arguments of plugstack.conf; logs those that are invalid. */
void read_arguments(struct arguments *arguments, int ac, char **av);
/* hook_inputs.c: the job's number and owner; false if Slurm does not provide the number. */
bool read_job(spank_t spank, struct message *message);
