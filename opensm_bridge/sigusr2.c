/*
 * SIGUSR2, for scripts: loads whatever routes.next holds. A signal handler may do very little, so it only writes to an
 * eventfd, and a thread of the socket does the work.
 *
 * When the plugin is unloaded, SIGUSR2 is ignored from then on: the handler's code is gone, and the default action would
 * end OpenSM.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "bridge.h"

static atomic_int signal_event = -1; /* the eventfd; a global, because a handler takes no argument */

static void on_signal(int number)
{
	const int saved = errno;
	const uint64_t increment = 1;

	(void)number;
	if (write(signal_event, &increment, sizeof(increment)) < 0)
		(void)0; /* the counter is full: a load is pending anyway */
	errno = saved;
}

bool sigusr2_start(struct reason *why)
{
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};

	signal_event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (signal_event >= 0 && !sigaction(SIGUSR2, &action, NULL))
		return true;
	return REASON(why, "cannot wait for SIGUSR2: %s", strerror(errno)), false;
}

int sigusr2_event(void)
{
	return signal_event;
}

bool sigusr2_take(void)
{
	uint64_t count;

	return read(signal_event, &count, sizeof(count)) > 0;
}

void sigusr2_stop(void)
{
	struct sigaction ignore = {.sa_handler = SIG_IGN};
	int file;

	sigaction(SIGUSR2, &ignore, NULL);
	file = atomic_exchange(&signal_event, -1);
	if (file >= 0)
		close(file);
}
