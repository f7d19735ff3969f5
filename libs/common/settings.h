/* Settings of the form key=value: the options of the OpenSM plugin, the arguments of the SPANK plugin and of sar-notify. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "reason.h"

enum setting_kind { SETTING_TEXT, SETTING_PATH, SETTING_NUMBER };

struct setting {
	const char *key;
	size_t offset; /* in the structure: a char[], or an unsigned */
	enum setting_kind kind;
	unsigned least, most; /* of the number; of the characters */
	const char *unit;     /* of a number */
};

struct settings {
	const char *noun; /* in sentences */
	const struct setting *all;
	size_t count;
};

/* Takes one word. False and `why` if it is invalid; then `to` is unchanged. */
bool settings_take(const struct settings *settings, void *to, const char *word, struct reason *why);
