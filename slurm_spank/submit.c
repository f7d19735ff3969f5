/* In srun, sbatch and salloc: hands the option to the controller's hooks, as SPANK_SAR_TRAFFIC in their environment. */
#include "hooks.h"

void submit_set_job_environment(spank_t spank)
{
	char traffic[TRAFFIC_SIZE];

	option_given(spank, traffic);
	if (*traffic)
		(void)spank_job_control_setenv(spank, "SAR_TRAFFIC", traffic, 1);
}
