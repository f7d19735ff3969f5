/*
 * munged may be stopped, a name server silent, a network file system gone: calls into libraries that
 * wait for such know no deadline. So a child does it all and writes one report into a pipe, for which
 * Slurm's process waits no longer than `timeout`. Whatever breaks, breaks in a process of its own.
 *
 * On a machine under load 50 ms may be over before the child, or the agent, has had its turn. So a child
 * that has a start or an end to tell is left alone then and has two seconds to deliver it. What a start is
 * answered late it keeps itself, since steps ask only where an answer was kept.
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

/* Milliseconds, after which an alarm ends the child whatever it does. */
#define LINGER 2000
/* Milliseconds for a late answer. Not long: who keeps it for a job that is over keeps it for nobody. */
#define LATE 500

/* Not more than PIPE_BUF, so that it is written at once or not at all. */
struct report {
	char heard;
	char text[ANSWER_SIZE];
};

/* Until `deadline` to send, until `patience` for an answer; `answer` NULL: to have sent it is enough. */
static bool ask_agent(const struct arguments *a, const char *payload, size_t length, int64_t deadline,
		      int64_t patience, char *answer, bool *sent, struct reason *why)
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
	if (*sent && (!answer || stream_line(stream, answer, ANSWER_SIZE, patience, &inner)))
		return true;
	REASON(why, "%.200s: %.200s", a->agent, inner.text);
	return false;
}

/* A step asks for the sake of the answer; and Slurm waits for the processes of a step. */
static bool lingers(const struct message *message)
{
	return strcmp(message->event, "hint") != 0;
}

/* When nobody may be left to whom it could be reported. */
static void keep_late(const struct arguments *a, const struct message *message, const char *json)
{
	struct answer answer;
	struct reason unsaid;

	if (*a->state && answer_read(&answer, json) && answer.ok)
		(void)environment_keep(&answer.env, a->state, message->job, &unsaid);
}

/* What it leaves open or allocated ends with the process. */
static void report(const struct arguments *a, const struct message *message, int64_t start, int pipe)
{
	char payload[PAYLOAD_SIZE];
	const size_t length = message_payload(message, payload);
	/* Some time is kept back to say what went wrong, and for the spool folder. */
	const int64_t heeded = start + (int64_t)a->timeout - 5;
	const int64_t deadline = lingers(message) ? start + LINGER - 200 : heeded;
	const int64_t patience = lingers(message) ? start + LATE : heeded;
	const bool ends = !strcmp(message->event, "end");
	struct report report = {.heard = HEARD_NOTHING};
	struct reason why = {"neither agent nor spool are given"};
	bool sent = false;

	if (!length)
		REASON(&why, "the message is too long");
	else if (*a->agent &&
		 ask_agent(a, payload, length, deadline, patience, ends ? NULL : report.text, &sent, &why))
		report.heard = ends ? HEARD_SENT : HEARD_ANSWER;
	else if (*a->spool && !sent && spool_write(a->spool, message->id, payload, length, &why))
		report.heard = HEARD_SPOOLED;
	if (report.heard == HEARD_NOTHING)
		snprintf(report.text, sizeof(report.text), "%s", why.text);
	if (report.heard == HEARD_ANSWER && lingers(message) && clock_ms() >= heeded)
		keep_late(a, message, report.text);
	while (write(pipe, &report, sizeof(report.heard) + strlen(report.text) + 1) < 0 && errno == EINTR)
		;
}

/*
 * Whoever reads the daemon's output must not wait for us; nor may we hold its other files. Returns `pipe` as 3,
 * the highest of what is left, or -1.
 */
static int keep_only(int pipe)
{
	/* Out of the way of 0 to 3, whatever of these the daemon has closed. */
	const int high = fcntl(pipe, F_DUPFD, 4);
	const int low = open("/dev/null", O_RDWR);
	const int null = low >= 0 ? fcntl(low, F_DUPFD, 4) : -1;
	int kept = -1;

	if (low >= 0)
		close(low);
	if (null >= 0) {
		for (int standard = 0; standard < 3; standard++)
			dup2(null, standard);
		close(null);
	}
	if (high >= 0) {
		kept = dup2(high, 3);
		close(high);
	}
#ifdef SYS_close_range
	(void)syscall(SYS_close_range, 4U, ~0U, 0U);
#endif
	return kept;
}

static void child(const struct arguments *a, const struct message *message, int64_t start, int pipe)
{
	const struct itimerval last = {.it_value.tv_sec = LINGER / 1000};
	sigset_t none;

	if (lingers(message))
		setsid(); /* Slurm ends the process group of its scripts */
	else
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGALRM, SIG_DFL);
	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	setitimer(ITIMER_REAL, &last, NULL);
	pipe = keep_only(pipe);
	if (pipe < 0)
		return;
	report(a, message, start, pipe);
	close(pipe);
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
	if (got || !lingers(message))
		end(pid);
	else
		(void)waitpid(pid, NULL, WNOHANG);
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
