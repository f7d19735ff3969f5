/*
 * SIGUSR2, for scripts: loads whatever routes.next holds. A signal handler may do very little, so it only writes to an
 * eventfd, and a thread does the work.
 *
 * When the plugin is unloaded, SIGUSR2 is ignored from then on: the handler's code is gone, and the default action would
 * end OpenSM.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "bridge.h"
#include "thread.h"

struct sigusr2 {
	int stop;
	pthread_t thread;
	bool running;
};

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

static void *work(void *argument)
{
	struct bridge *b = argument;

	for (;;) {
		struct pollfd wait[] = {{.fd = signal_event, .events = POLLIN},
					{.fd = b->sigusr2->stop, .events = POLLIN}};
		struct reason why;
		uint64_t count;

		if (poll(wait, 2, -1) < 0 && errno != EINTR)
			return NULL;
		if (wait[1].revents)
			return NULL;
		if (read(signal_event, &count, sizeof(count)) > 0)
			reload(b, 0, "any", &why); /* it logs the result */
	}
}

bool sigusr2_start(struct bridge *b, struct reason *why)
{
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
	struct sigusr2 *u = calloc(1, sizeof(*u));

	b->sigusr2 = u;
	if (!u) {
		REASON(why, "no memory");
		return false;
	}
	u->stop = eventfd(0, EFD_CLOEXEC);
	signal_event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	u->running = u->stop >= 0 && signal_event >= 0 && !thread_start(&u->thread, work, b);
	if (!u->running || sigaction(SIGUSR2, &action, NULL)) {
		REASON(why, "cannot wait for SIGUSR2: %s", strerror(errno));
		return false;
	}
	return true;
}

/* May be called after a failed sigusr2_start(), too. */
void sigusr2_stop(struct bridge *b)
{
	struct sigaction ignore = {.sa_handler = SIG_IGN};
	struct sigusr2 *u = b->sigusr2;
	const uint64_t increment = 1;
	int file;

	if (!u)
		return;
	sigaction(SIGUSR2, &ignore, NULL);
	if (u->running && write(u->stop, &increment, sizeof(increment)) > 0)
		pthread_join(u->thread, NULL);
	file = atomic_exchange(&signal_event, -1);
	if (file >= 0)
		close(file);
	if (u->stop >= 0)
		close(u->stop);
	free(u);
	b->sigusr2 = NULL;
}
