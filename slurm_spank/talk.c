/*
 * munged may be stopped, a name server silent, a network file system gone: calls into libraries that
 * wait for such know no deadline. So a child does it all, writes one report into a pipe, and is killed
 * when the time is over. Whatever it breaks, it breaks in a process of its own, not in Slurm's.
 */
#include "talk.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "credential.h"
#include "spool.h"
#include "stream.h"

/* Not more than PIPE_BUF, so that it is written at once or not at all. */
struct report {
	char heard;
	char text[ANSWER_SIZE];
};

/* `answer` NULL: to have sent it is enough. */
static bool ask_agent(const struct arguments *a, const char *payload, size_t length, int64_t deadline,
		      char *answer, bool *sent, struct reason *why)
{
	struct reason inner = {""};
	char *credential = credential_make(a->munge_socket, payload, length, why);
	size_t size;
	int stream;

	if (!credential)
		return false;
	size = strlen(credential);
	credential[size] = '\n'; /* in place of its '\0': a line is counted, not ended */
	stream = stream_open(a->agent, deadline, &inner);
	*sent = stream >= 0 && stream_send(stream, credential, size + 1, deadline, &inner);
	if (*sent && (!answer || stream_line(stream, answer, ANSWER_SIZE, deadline, &inner)))
		return true;
	REASON(why, "%.200s: %.200s", a->agent, inner.text);
	return false;
}

/* What it leaves open or allocated ends with the process. */
static void report(const struct arguments *a, const struct message *message, int64_t start, int pipe)
{
	char payload[PAYLOAD_SIZE];
	const size_t length = message_payload(message, payload);
	/* With a spool folder, time is kept back for it; without, to say what went wrong. */
	const int64_t deadline = start + (*a->spool ? (int64_t)a->timeout * 3 / 4 : (int64_t)a->timeout - 5);
	const bool ends = !strcmp(message->event, "end");
	struct report report = {.heard = HEARD_NOTHING};
	struct reason why = {"neither agent nor spool are given"};
	bool sent = false;

	if (!length)
		REASON(&why, "the message is too long");
	else if (*a->agent &&
		 ask_agent(a, payload, length, deadline, ends ? NULL : report.text, &sent, &why))
		report.heard = ends ? HEARD_SENT : HEARD_ANSWER;
	else if (*a->spool && !sent && spool_write(a->spool, message->id, payload, length, &why))
		report.heard = HEARD_SPOOLED;
	if (report.heard == HEARD_NOTHING)
		snprintf(report.text, sizeof(report.text), "%s", why.text);
	while (write(pipe, &report, sizeof(report.heard) + strlen(report.text) + 1) < 0 && errno == EINTR)
		;
}

static void child(const struct arguments *a, const struct message *message, int64_t start, int pipe)
{
	const struct itimerval last = {.it_value.tv_usec = 2 * MOST_TIMEOUT * 1000};
	const int null = open("/dev/null", O_RDWR);
	sigset_t none;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGALRM, SIG_DFL);
	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	setitimer(ITIMER_REAL, &last, NULL);
	/* Whoever reads the daemon's output must not wait for us; nor may we hold its other files. */
	for (int standard = 0; standard < 3; standard++)
		dup2(null, standard);
	if (pipe > 3) {
		dup2(pipe, 3);
		pipe = 3;
	}
#ifdef SYS_close_range
	(void)syscall(SYS_close_range, (unsigned)pipe + 1, ~0U, 0U);
#endif
	report(a, message, start, pipe);
}

static size_t collect(int pipe, struct report *report, int64_t deadline)
{
	struct pollfd about = {.fd = pipe, .events = POLLIN};
	ssize_t got = 0;
	int ready;

	do {
		const int64_t left = deadline - clock_ms();

		ready = poll(&about, 1, left > 0 ? (int)left : 0);
	} while (ready < 0 && errno == EINTR);
	if (ready > 0)
		do
			got = read(pipe, report, sizeof(*report));
		while (got < 0 && errno == EINTR);
	return got > 0 ? (size_t)got : 0;
}

/* One that hangs inside the kernel is left to init: it holds nothing of ours. */
static void end(pid_t pid)
{
	if (waitpid(pid, NULL, WNOHANG))
		return;
	kill(pid, SIGKILL);
	for (int tries = 0; tries < 20 && !waitpid(pid, NULL, WNOHANG); tries++)
		poll(NULL, 0, 1);
}

enum heard talk(const struct arguments *a, struct message *message, struct answer *answer, struct reason *why)
{
	const int64_t start = clock_ms();
	struct report report = {.heard = HEARD_NOTHING};
	int ends[2];
	size_t got;
	pid_t pid;

	message_identify(message);
	if (pipe2(ends, O_CLOEXEC)) {
		REASON(why, "pipe: %s", strerror(errno));
		return HEARD_NOTHING;
	}
	pid = fork();
	if (!pid) {
		child(a, message, start, ends[1]);
		_exit(0);
	}
	close(ends[1]);
	got = pid > 0 ? collect(ends[0], &report, start + a->timeout) : 0;
	if (pid < 0)
		REASON(why, "fork: %s", strerror(errno));
	close(ends[0]);
	if (pid < 0)
		return HEARD_NOTHING;
	end(pid);
	report.text[sizeof(report.text) - 1] = '\0';
	if (!got)
		REASON(why, "no answer within %u ms", a->timeout);
	else if (report.heard == HEARD_NOTHING)
		REASON(why, "%.*s", (int)sizeof(why->text) - 1, report.text);
	else if (report.heard == HEARD_ANSWER && !answer_read(answer, report.text))
		REASON(why, "%.200s did not answer as PROTOCOL.md has it", a->agent);
	else
		return (enum heard)report.heard;
	return HEARD_NOTHING;
}
