/* One sentence that says why something cannot be done; it ends in the log and on the socket. */
#ifndef SAR_REASON_H
#define SAR_REASON_H
#include <stdio.h>

struct reason {
	char text[512];
};

#define REASON(why, ...) ((void)snprintf((why)->text, sizeof((why)->text), __VA_ARGS__))

#endif
