/* Arguments of the form key=value, from the plugin's line in plugstack.conf and from sar-notify's command line. */
#pragma once
#include <stdbool.h>

#include "reason.h"

#define PATH_SIZE 512
#define LEAST_TIMEOUT 10
#define MOST_TIMEOUT 100 /* more would delay every job start noticeably while the agent is down */
/* srun needs some 75 ms to its first task anyway, which hides a prolog of that length; a prolog of 100 ms delays the job
 * by 200 ms. */
#define DEFAULT_TIMEOUT 50
/* A routing key is in force some 0.5 s after the request; srun gives a step 10 s to start. */
#define DEFAULT_KEY_TIMEOUT 2000
#define MOST_KEY_TIMEOUT  8000

struct arguments {
	char agent[256];	 /* HOST:PORT, or the path of a Unix socket; "": there is none */
	char agent_user[64];	 /* the agent's account; nobody else can decode the messages */
	char munge_socket[108];	 /* "": munge's default */
	char state[PATH_SIZE];	 /* folder where answers are stored for the job's steps */
	char env_file[PATH_SIZE]; /* the site's file of NAME=VALUE; %j is the job id */
	char allow[PATH_SIZE];	 /* names of variables that tasks may get, separated by colons */
	unsigned timeout;	 /* milliseconds for one message, including the answer */
	unsigned key_timeout;	 /* milliseconds that a step waits for its routing key */
	unsigned debug; /* 0 or 1 */
};

void arguments_default(struct arguments *arguments);
/* Takes one argument. False and `why` if it is invalid; then `arguments` is unchanged. */
bool arguments_take(struct arguments *arguments, const char *word, struct reason *why);
