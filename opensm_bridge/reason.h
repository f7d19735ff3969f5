/* One sentence that says why something cannot be done; it ends in the log and on the socket. */
#ifndef SAR_REASON_H
#define SAR_REASON_H
#include <stdio.h>

struct reason {
	char text[512];
	const char *code; /* one of README's, for programs; NULL is "other" */
};

#define REASON(why, ...) REASON_OF(why, "other", __VA_ARGS__)
#define REASON_OF(why, word, ...) \
	((why)->code = (word), (void)snprintf((why)->text, sizeof((why)->text), __VA_ARGS__))

#endif
