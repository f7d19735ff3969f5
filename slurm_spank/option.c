/* --sar-traffic: an invalid pattern is refused before the job is submitted, while the user can still correct it. */
#include <stdlib.h>
#include <string.h>

#include "hooks.h"

static char chosen[TRAFFIC_SIZE]; /* the pattern of this command or step */

/* Called by Slurm with the option's argument. If the result is negative, Slurm refuses the command. */
static int choose(int value, const char *text, int remote)
{
	(void)value;
	if (!text)
		text = "";
	if (!remote && !strcmp(text, "help")) {
		traffic_help(stdout);
		fflush(stdout);
		exit(0);
	}
	if (traffic_known(text)) {
		strcpy(chosen, text);
		return 0;
	}
	if (remote)
		return 0; /* the job runs already: too late to refuse it */
	log_error("--sar-traffic=%.64s is no traffic pattern; there are %s, and --sar-traffic=help explains them",
		  text, traffic_forms());
	return -1;
}

static struct spank_option option = {
	.name = (char *)"sar-traffic",
	.arginfo = (char *)"PATTERN",
	.usage = (char *)"traffic pattern of the job, for its routes; help lists them",
	.has_arg = 1,
	.cb = choose,
};

int option_register(spank_t spank)
{
	return spank_option_register(spank, &option);
}

void option_given(spank_t spank, char traffic[TRAFFIC_SIZE])
{
	char *text = NULL;

	/* In prolog and epilog Slurm calls no callback; elsewhere spank_option_getopt() is not allowed. */
	if (!*chosen && spank_context() == S_CTX_JOB_SCRIPT &&
	    spank_option_getopt(spank, &option, &text) == ESPANK_SUCCESS && text && traffic_known(text))
		strcpy(chosen, text);
	strcpy(traffic, chosen);
}
