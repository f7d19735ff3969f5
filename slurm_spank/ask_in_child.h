/* Ask the agent from a child process, so that the time limit holds whatever the libraries involved do. */
#pragma once
#include "answer.h"
#include "arguments.h"
#include "message.h"

enum outcome {
	OUTCOME_ANSWERED, /* `answer` is set */
	OUTCOME_SENT,	  /* the end of a job was sent; nobody waits for an answer */
	OUTCOME_FAILED,	  /* `why` gives the reason; the child may still deliver the start or end of a job */
};

/* Gives `message` an id and sends it. Returns after `arguments->timeout` milliseconds at the latest. */
enum outcome ask_in_child(const struct arguments *arguments, struct message *message, struct answer *answer,
			  struct reason *why);
