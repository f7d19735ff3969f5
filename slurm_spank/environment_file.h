/* Environment variables of a job's tasks, in files: the agent's answer, stored for the job's steps, and the site's file. */
#pragma once
#include "environment.h"
#include "reason.h"

/* Stores the agent's answer for the job's steps, as FOLDER/JOB. The file may be empty. */
bool environment_store(const struct environment *environment, const char *folder, uint32_t job, struct reason *why);
/* Adds what was stored; false if there is no such file that only root or this user can have written. Invalid lines are
 * skipped. */
bool environment_load(struct environment *environment, const char *folder, uint32_t job);
/* Removes what was stored for a job. Of a job that starts, only a file older than STALE_SECONDS, which is that of an
 * earlier job with the same number: where nodes share the folder, a younger one is what another node was just told. */
void environment_forget(const char *folder, uint32_t job, bool starts);
#define STALE_SECONDS 600
/* Adds the variables of the site's file, in whose name "%j" stands for the job id. The same check as in
 * environment_load() applies. */
bool environment_read_site_file(struct environment *environment, const char *pattern, uint32_t job);
