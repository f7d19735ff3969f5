/* Why an operation failed: one sentence, which ends up in a log or in an answer on the plugin's socket. */
#pragma once
#include <stdio.h>

struct reason {
	char text[512];
	const char *code; /* for programs: one of those in opensm_bridge/README.md; NULL means "other" */
};

#define REASON(why, ...) REASON_OF(why, "other", __VA_ARGS__)
#define REASON_OF(why, word, ...) \
	((why)->code = (word), (void)snprintf((why)->text, sizeof((why)->text), __VA_ARGS__))

/* In a function that has `why` and returns whether it succeeded. */
#define REFUSE(...) return REASON(why, __VA_ARGS__), false
