/* srun, sbatch, salloc: the controller's hooks see the option as SPANK_SAR_TRAFFIC. */
#include "hooks.h"

void submit_tell_slurm(spank_t spank)
{
	char traffic[TRAFFIC_SIZE];

	option_given(spank, traffic);
	if (*traffic)
		(void)spank_job_control_setenv(spank, "SAR_TRAFFIC", traffic, 1);
}
