/*
 * The trace for a replay against the model: one JSON object a line. A line is written before this party sends or begins
 * something, and after it receives or completes something. So the lines of all parties, sorted by time, are in an order in
 * which the events can have happened.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <time.h>
#include <unistd.h>

#include "library.h"

void trace(struct sar_migrate *m, const char *event, const char *members, ...)
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
	va_start(arguments, members);
	added = vsnprintf(line + length, sizeof(line) - (size_t)length - 2, members, arguments);
	va_end(arguments);
	if (added < 0 || (size_t)added >= sizeof(line) - (size_t)length - 2)
		return;
	length += added;
	line[length++] = '}';
	line[length++] = '\n';
	/* Each line is one write(), so that processes may share a file. */
	if (write(m->trace, line, (size_t)length) < 0)
		m->trace = -1;
}
