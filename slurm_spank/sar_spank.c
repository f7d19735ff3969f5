/*
 * The SPANK plugin: calls the file that serves each of Slurm's hooks. Every hook returns 0: no job may fail, and no
 * node may be drained, because routes could not be made for it.
 */
#include <stdarg.h>
#include <stdio.h>
#include <sys/types.h>

#include "hooks.h"

#define LINE_SIZE 1024

void log_line(enum log_level level, const char *format, ...)
{
	char line[LINE_SIZE];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(line, sizeof(line), format, arguments);
	va_end(arguments);
	if (level == LEVEL_ERROR)
		slurm_error("sar_spank: %s", line);
	else
		slurm_info("sar_spank: %s", line);
}

#pragma GCC visibility push(default)
SPANK_PLUGIN(sar_spank, 1);

int slurm_spank_init(spank_t spank, int ac, char **av)
{
	const spank_context_t context = spank_context();

	(void)ac;
	(void)av;
	if (context == S_CTX_LOCAL || context == S_CTX_ALLOCATOR || context == S_CTX_REMOTE)
		option_register(spank);
	return 0;
}

int slurm_spank_init_post_opt(spank_t spank, int ac, char **av)
{
	if (spank_context() == S_CTX_REMOTE)
		step_set_environment(spank, ac, av);
	else
		submit_set_job_environment(spank);
	return 0;
}

int slurm_spank_job_prolog(spank_t spank, int ac, char **av)
{
	job_starts(spank, ac, av);
	return 0;
}

int slurm_spank_job_epilog(spank_t spank, int ac, char **av)
{
	job_ends(spank, ac, av);
	return 0;
}
#pragma GCC visibility pop
