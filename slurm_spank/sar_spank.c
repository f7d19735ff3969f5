/*
 * The SPANK plugin: which of Slurm's hooks is answered by which file. Every hook returns 0: no job may
 * fail, and no node be drained, because routes could not be made for it.
 */
#include "hooks.h"

#pragma GCC visibility push(default)
SPANK_PLUGIN(sar_spank, 1);

int slurm_spank_init(spank_t spank, int count, char **words)
{
	const spank_context_t context = spank_context();

	(void)count;
	(void)words;
	if (context == S_CTX_LOCAL || context == S_CTX_ALLOCATOR || context == S_CTX_REMOTE)
		option_register(spank);
	return 0;
}

int slurm_spank_init_post_opt(spank_t spank, int count, char **words)
{
	if (spank_context() == S_CTX_REMOTE)
		step_set_environment(spank, count, words);
	else
		submit_tell_slurm(spank);
	return 0;
}

int slurm_spank_job_prolog(spank_t spank, int count, char **words)
{
	job_starts(spank, count, words);
	return 0;
}

int slurm_spank_job_epilog(spank_t spank, int count, char **words)
{
	job_ends(spank, count, words);
	return 0;
}
#pragma GCC visibility pop
