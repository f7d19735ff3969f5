/* key=value arguments: of the plugin's line in plugstack.conf, and of sar-notify. */
#ifndef SAR_ARGUMENTS_H
#define SAR_ARGUMENTS_H
#include <stdbool.h>

#include "reason.h"

#define PATH_SIZE 512
#define LEAST_TIMEOUT 10
#define MOST_TIMEOUT 100 /* more would be felt at every job's start while the agent is away */
/* srun's own way to the first task hides a prolog of some 75 ms; one of 100 ms it notices 200 ms late. */
#define USUAL_TIMEOUT 50
/* Routes of its own are in force some 0.5 s after a job asked for them; srun gives a step 10 s to start. */
#define USUAL_KEY_TIMEOUT 2000
#define MOST_KEY_TIMEOUT  8000

struct arguments {
	char agent[256];	 /* HOST:PORT, or the path of a Unix socket; "" is nobody */
	char agent_user[64];	 /* as whom it runs: who else listens there cannot read what we say */
	char munge_socket[108];	 /* "" is munge's own default */
	char spool[PATH_SIZE];	 /* folder for messages where munge or the agent is missing */
	char state[PATH_SIZE];	 /* folder where answers wait for the job's steps */
	char env_file[PATH_SIZE]; /* a site's own file of NAME=VALUE; %j is the job id */
	char allow[PATH_SIZE];	 /* names that tasks may be given, separated by colons */
	unsigned timeout;	 /* milliseconds for one message, all in all */
	unsigned key_timeout;	 /* milliseconds that a step waits for the routes its user asked for */
	bool debug;
};

void arguments_default(struct arguments *arguments);
/* False, and why, for a word that makes no sense: it is passed over, the others hold. */
bool arguments_take(struct arguments *arguments, const char *word, struct reason *why);

#endif
