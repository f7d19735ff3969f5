/*
 * A subscriber for live tests: the whole library on model queue pairs (model_qp.h) that carry traffic. The process ends
 * at SIGTERM, or with stdin=1 when stdin closes, and then prints its counters.
 *
 *   sar-migrate-demo agent=ADDRESS job=ID [munge=SOCKET] [notices=1] [simulated=1] [trace=FILE] [pairs=4]
 *                    [thread=1] [stuck=1] [count=1]
 *
 * With stuck=1 no queue pair ever drains. count=N runs N subscribers in this process, each with its own pairs; the first
 * passes notices on to the others, as the ranks of a job would.
 */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "model_qp.h"
#include "sar_migrate.h"

#define MOST_PAIRS 64
#define MOST_COUNT 256

struct subscriber {
	struct sar_migrate *m;
	struct model_net net;
	struct model_qp qps[2 * MOST_PAIRS];
};

static volatile sig_atomic_t stopped;

static void stop(int signal)
{
	(void)signal;
	stopped = 1;
}

static const char *argument(int argc, char **argv, const char *key, const char *otherwise)
{
	const size_t length = strlen(key);

	for (int i = 1; i < argc; i++)
		if (!strncmp(argv[i], key, length) && argv[i][length] == '=')
			return argv[i] + length + 1;
	return otherwise;
}

static int number(int argc, char **argv, const char *key, int otherwise)
{
	const char *text = argument(argc, argv, key, NULL);

	return text ? atoi(text) : otherwise;
}

static int begin(struct subscriber *s, const struct sar_migrate_options *options, unsigned qps, bool stuck)
{
	char error[512];
	unsigned offset;

	s->m = sar_migrate_open(options, &model_ops, error, sizeof(error));
	if (!s->m)
		return fprintf(stderr, "sar-migrate-demo: %s\n", error), 0;
	offset = sar_migrate_offset(s->m); /* 1: there was no step yet */
	for (unsigned i = 0; i < qps; i += 2) {
		model_connect(&s->net, &s->qps[i], &s->qps[i + 1], offset);
		s->qps[i].stuck = s->qps[i + 1].stuck = stuck;
	}
	for (unsigned i = 0; i < qps; i++)
		if (sar_migrate_add(s->m, &s->qps[i], offset))
			return fprintf(stderr, "sar-migrate-demo: the offset has changed\n"), 0;
	return 1;
}

/* One millisecond of traffic. The model has no locks, so its time stands still while a thread of the library runs. */
static void work(struct subscriber *s, unsigned qps, bool threaded)
{
	if (!threaded) {
		for (unsigned i = 0; i < qps; i++)
			s->qps[i].posted += s->qps[i].posted - s->qps[i].answered < 4;
		model_tick(&s->net, s->qps, qps);
	}
	for (unsigned i = 0; i < qps; i++) {
		if (model_pulled(&s->qps[i]))
			sar_migrate_pulled(s->m, &s->qps[i]);
		if (model_drained(&s->qps[i]))
			sar_migrate_drained(s->m, &s->qps[i]);
	}
}

/* Passes the first subscriber's notices on to the others. */
static void pass_on(struct subscriber *all, int count)
{
	static uint64_t passed_update;
	static int passed_kind;
	uint64_t update, generation;
	const int kind = sar_migrate_heard(all->m, &update, &generation);

	if (kind == passed_kind && update == passed_update)
		return;
	for (int i = 1; i < count; i++)
		sar_migrate_notice(all[i].m, kind, update, generation);
	passed_kind = kind;
	passed_update = update;
}

static void end(struct subscriber *s, unsigned qps)
{
	char problem[512];
	uint64_t answered = 0;

	sar_migrate_problem(s->m, problem, sizeof(problem));
	for (unsigned i = 0; i < qps; i++) {
		answered += s->qps[i].answered;
		sar_migrate_remove(s->m, &s->qps[i]);
	}
	printf("{\"answered\":%llu,\"delivered\":%llu,\"offset\":%u}\n", (unsigned long long)answered,
	       (unsigned long long)s->net.delivered, sar_migrate_offset(s->m));
	if (*problem)
		fprintf(stderr, "sar-migrate-demo: %s\n", problem);
	sar_migrate_close(s->m);
}

int main(int argc, char **argv)
{
	struct sar_migrate_options options = {
		.agent = argument(argc, argv, "agent", NULL),
		.munge_socket = argument(argc, argv, "munge", NULL),
		.job = (uint32_t)number(argc, argv, "job", 0),
		.notices = number(argc, argv, "notices", 0),
		.simulated = number(argc, argv, "simulated", 0),
		.trace = argument(argc, argv, "trace", NULL),
	};
	const unsigned qps = 2u * (unsigned)number(argc, argv, "pairs", 4);
	const int subscribers = number(argc, argv, "count", 1);
	const bool threaded = number(argc, argv, "thread", 0), stuck = number(argc, argv, "stuck", 0);
	struct pollfd wait[2] = {{.events = POLLIN}, {.fd = number(argc, argv, "stdin", 0) ? 0 : -1}};
	struct subscriber *all;
	int begun = 0;

	if (qps > 2 * MOST_PAIRS || subscribers < 1 || subscribers > MOST_COUNT)
		return fprintf(stderr, "sar-migrate-demo: too many pairs or subscribers\n"), EXIT_FAILURE;
	signal(SIGTERM, stop);
	signal(SIGINT, stop);
	all = calloc((size_t)subscribers, sizeof(*all));
	while (all && begun < subscribers && begin(&all[begun], &options, qps, stuck)) {
		if (threaded && sar_migrate_thread(all[begun].m))
			break;
		begun++;
		options.notices = 0; /* one subscriber of a process receives them */
	}
	if (!all || begun < subscribers)
		return EXIT_FAILURE;
	printf("{\"ready\":true}\n");
	fflush(stdout);
	while (!stopped && !(wait[1].revents & (POLLHUP | POLLERR))) {
		wait[0].fd = subscribers == 1 && !threaded ? sar_migrate_fd(all->m) : -1;
		poll(wait, 2, 1);
		for (int i = 0; i < subscribers; i++) {
			if (!threaded)
				sar_migrate_step(all[i].m);
			work(&all[i], qps, threaded);
		}
		pass_on(all, subscribers);
	}
	for (int i = 0; i < subscribers; i++)
		end(&all[i], qps);
	free(all);
	if (options.simulated) {
		/* umad2sim's exit handler waits, with a lock, for a thread of its own that may wait for this lock. */
		fflush(stdout);
		_exit(EXIT_SUCCESS);
	}
	return EXIT_SUCCESS;
}
