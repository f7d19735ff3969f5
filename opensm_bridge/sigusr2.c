/* SIGUSR2, for scripts: loads whatever routes.next holds. A thread of the socket sees the flag within a second, and does the work. */
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "bridge.h"

static atomic_bool arrived;

static void on_signal(int number)
{
	(void)number;
	arrived = true;
}

bool sigusr2_start(struct reason *why)
{
	if (!sigaction(SIGUSR2, &(struct sigaction){.sa_handler = on_signal, .sa_flags = SA_RESTART}, NULL))
		return true;
	REFUSE("cannot wait for SIGUSR2: %s", strerror(errno));
}

bool sigusr2_take(void)
{
	return atomic_exchange(&arrived, false);
}

/* The plugin is unloaded: the handler's code is gone, and the default action would end OpenSM. */
void sigusr2_stop(void)
{
	signal(SIGUSR2, SIG_IGN);
}
