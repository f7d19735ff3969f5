/* What the plugin does in each of Slurm's contexts; sar_spank.c calls them. */
#ifndef SAR_HOOKS_H
#define SAR_HOOKS_H
#include <slurm/spank.h>

#include "arguments.h"
#include "message.h"
#include "talk.h"
#include "traffic.h"

#define SAY_ERROR(...) slurm_error("sar_spank: " __VA_ARGS__)
#define SAY(...)       slurm_info("sar_spank: " __VA_ARGS__)

/* option.c: --sar-traffic, in every context. */
int option_register(spank_t spank);
/* What it says for this job; "" where it was not given. Copied to `traffic`. */
void option_given(spank_t spank, char traffic[TRAFFIC_SIZE]);
/* submit.c: in srun, sbatch, salloc. */
void submit_tell_slurm(spank_t spank);
/* job_script.c: as root beside the node's prolog and epilog. */
void job_starts(spank_t spank, int count, char **words);
void job_ends(spank_t spank, int count, char **words);
/* step.c: as root in slurmstepd, before the tasks. */
void step_set_environment(spank_t spank, int count, char **words);

/* tell.c: what the contexts that speak have in common. */
void tell_read(struct arguments *arguments, int count, char **words);
/* The job's number and owner; false if Slurm does not say. */
bool tell_about(spank_t spank, struct message *message);
/* Sends it; with an answer, its environment is kept for the job's steps. How many milliseconds later to
 * ask again, 0 for never, -1 if nobody answered. */
int tell(const struct arguments *arguments, struct message *message, struct environment *environment);

#endif
