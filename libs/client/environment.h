/* Environment variables that the agent's answer sets for a job's tasks. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MOST_VARIABLES 16

struct variable {
	char name[64], value[256];
};
struct environment {
	unsigned count;
	struct variable variable[MOST_VARIABLES];
};

/* Adds a variable, or replaces its value. False if the name or the value is invalid, or if there are too many. */
bool environment_add(struct environment *environment, const char *name, size_t name_length,
		     const char *value, size_t value_length);
/* Whether an agent's answer may set `name` to `value`. The answer is not signed, so the variables that we know take
 * small numbers only; for other names the site's list decides. */
bool environment_harmless(const char *name, const char *value);
/* Whether `name` is in `allow`, a list separated by colons. */
bool environment_allows(const char *allow, const char *name);
/* Reads the number in a variable of this process; false, and 0, if it is unset or not a number of 32 bits. */
bool environment_number(const char *name, uint32_t *number);
