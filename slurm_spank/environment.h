/* What tasks may find in their environment: a few names, each with a plain value. */
#ifndef SAR_ENVIRONMENT_H
#define SAR_ENVIRONMENT_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "reason.h"

#define MOST_VARIABLES 16

struct variable {
	char name[64], value[256];
};
struct environment {
	unsigned count;
	struct variable variable[MOST_VARIABLES];
};

/* Adds a variable, or replaces its value, if its name and value are fit; false if not. */
bool environment_add(struct environment *environment, const char *name, size_t name_length,
		     const char *value, size_t value_length);
/* Whether an agent's answer may set `name` to `value`: those that we know say small numbers only, since the
 * answer is not signed. Of other names the site's list decides. */
bool environment_harmless(const char *name, const char *value);
bool environment_allows(const char *allow, const char *name);

/* FOLDER/JOB: what the agent answered, kept for the job's steps. The file may be empty. */
bool environment_keep(const struct environment *environment, const char *folder, uint32_t job,
		      struct reason *why);
void environment_forget(const char *folder, uint32_t job);
/* False if there is no such file that only root or we could have written; lines unfit are left out. */
bool environment_kept(struct environment *environment, const char *folder, uint32_t job);
/* The site's own file; "%j" in its name is the job id. */
bool environment_read(struct environment *environment, const char *pattern, uint32_t job);

#endif
