/* Report a job's event to the agent; shared by the plugin and sar-notify. */
#pragma once
#include "arguments.h"
#include "environment.h"
#include "message.h"

/*
 * Asks the agent, logs the result, and stores the environment of a positive answer for the job's steps (argument
 * `state`). Returns after how many milliseconds to ask again; 0: never; -1: the agent did not answer.
 */
int report_event(const struct arguments *arguments, struct message *message, struct environment *environment);
