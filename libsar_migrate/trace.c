/*
 * What is said and done, a JSON object a line, for a replay against the model. A line is written before what we
 * say or begin, and after what we hear or end, so the lines of all parties in order of their time are in an order
 * in which it can have happened.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <time.h>
#include <unistd.h>

#include "library.h"

void trace(struct sar_migrate *m, const char *event, const char *more, ...)
{
	char line[512];
	struct timespec now;
	va_list arguments;
	int length, added;

	if (m->trace < 0)
		return;
	clock_gettime(CLOCK_REALTIME, &now);
	length = snprintf(line, sizeof(line),
			  "{\"at\":%jd.%09ld,\"party\":\"subscriber\",\"id\":\"%s\",\"job\":\"%" PRIu32
			  "\",\"event\":\"%s\"",
			  (intmax_t)now.tv_sec, now.tv_nsec, m->subscriber, m->job, event);
	va_start(arguments, more);
	added = vsnprintf(line + length, sizeof(line) - (size_t)length - 2, more, arguments);
	va_end(arguments);
	if (added < 0 || (size_t)added >= sizeof(line) - (size_t)length - 2)
		return;
	length += added;
	line[length++] = '}';
	line[length++] = '\n';
	/* Whole lines at once, so that processes may share a file. */
	if (write(m->trace, line, (size_t)length) < 0)
		m->trace = -1;
}
