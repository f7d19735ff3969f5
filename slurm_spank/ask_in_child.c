/*
 * munged may be stopped, a name server silent, a network file system gone, and the library calls that wait for them
 * know no deadline. So a child does all the work and writes one report into a pipe, for which Slurm's process waits
 * no longer than `timeout`. If something breaks, it breaks in a process of its own.
 *
 * On a loaded machine 50 ms may pass before the child or the agent has run at all. So a child that reports the start
 * or the end of a job is left alone when `timeout` is over, and has two seconds to deliver the message. If the answer
 * to a job start arrives after Slurm stopped waiting, the child stores it itself, because steps ask again only if an
 * answer was stored.
 */
#include "ask_in_child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ask_agent.h"
#include "connection.h"
#include "environment_file.h"

/* Milliseconds after which an alarm ends the child, whatever it does. */
#define CHILD_LIFETIME 2000
/* Milliseconds to wait for a late answer. Kept short: an answer stored after the job has ended is useless. */
#define LATE_ANSWER 500

/* What the child writes into the pipe: at most PIPE_BUF bytes, so that they are written at once or not at all. */
struct report {
	char outcome;
	char text[ANSWER_SIZE]; /* the answer; after a failure, the reason */
};

/* A step asks only for the answer, and Slurm waits for the processes of a step, so its child does not outlive the
 * deadline. The start and the end of a job are still worth delivering. */
static bool outlives_deadline(const struct message *message)
{
	return strcmp(message->event, "hint") != 0;
}

/* Nobody may be left to report a failure to. */
static void store_late_answer(const struct arguments *a, const struct message *message, const char *lines)
{
	struct answer answer;
	struct reason unused;

	if (*a->state && answer_parse(&answer, lines) && answer.ok)
		(void)environment_store(&answer.env, a->state, message->job, &unused);
}

/* The process ends after this, which releases what is still open or allocated. */
static void ask_and_report(const struct arguments *a, const struct message *message, int64_t start, int pipe)
{
	const struct agent_address agent = {a->agent, a->munge_socket, a->agent_user};
	const bool lasting = outlives_deadline(message), is_end = !strcmp(message->event, "end");
	/* The last 5 ms are reserved for the report. */
	const int64_t parent_deadline = start + (int64_t)a->timeout - 5;
	const int64_t send_deadline = lasting ? start + CHILD_LIFETIME - 200 : parent_deadline;
	const int64_t answer_deadline = lasting ? start + LATE_ANSWER : parent_deadline;
	struct report report = {.outcome = OUTCOME_FAILED};
	struct reason why = {.text = "no agent is given"};
	enum ask_result result = ASK_FAILED;
	char payload[PAYLOAD_SIZE];
	const size_t length = message_encode(message, payload, sizeof(payload));

	if (!length)
		REASON(&why, "the message is too long");
	else if (*a->agent)
		result = ask_agent(&agent, payload, length, send_deadline, answer_deadline,
				   is_end ? NULL : report.text, &why);
	if (result == ASK_ANSWERED)
		report.outcome = OUTCOME_ANSWERED;
	else if (result == ASK_SENT && is_end)
		report.outcome = OUTCOME_SENT;
	if (report.outcome == OUTCOME_FAILED)
		snprintf(report.text, sizeof(report.text), "%s", why.text);
	if (report.outcome == OUTCOME_ANSWERED && lasting && clock_ms() >= parent_deadline)
		store_late_answer(a, message, report.text);
	while (write(pipe, &report, sizeof(report.outcome) + strlen(report.text) + 1) < 0 && errno == EINTR)
		;
}

/*
 * Closes all descriptors but the pipe: a process that reads the daemon's output must not wait for the child, and the
 * child must not hold the daemon's other files. Returns the pipe as descriptor 3, the highest that is left, or -1.
 */
static int keep_only(int pipe)
{
	/* Out of the way of 0 to 3, whichever of these the daemon has closed. */
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
	const struct itimerval lifetime = {.it_value.tv_sec = CHILD_LIFETIME / 1000};
	sigset_t none;

	if (!outlives_deadline(message))
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGALRM, SIG_DFL);
	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	setitimer(ITIMER_REAL, &lifetime, NULL);
	pipe = keep_only(pipe);
	if (pipe < 0)
		return;
	ask_and_report(a, message, start, pipe);
	close(pipe);
}

/* Reads the child's report; returns its length, 0 if there is none at the deadline. */
static size_t collect(int pipe, struct report *report, int64_t deadline)
{
	struct pollfd wait = {.fd = pipe, .events = POLLIN};
	ssize_t got = 0;
	int ready;

	do {
		const int64_t left = deadline - clock_ms();

		ready = poll(&wait, 1, left > 0 ? (int)left : 0);
	} while (ready < 0 && errno == EINTR);
	if (ready > 0)
		do
			got = read(pipe, report, sizeof(*report));
		while (got < 0 && errno == EINTR);
	return got > 0 ? (size_t)got : 0;
}

/* A child that hangs inside the kernel is left to init; it holds nothing of the parent's. */
static void end(pid_t pid)
{
	if (waitpid(pid, NULL, WNOHANG))
		return;
	kill(pid, SIGKILL);
	for (int tries = 0; tries < 20 && !waitpid(pid, NULL, WNOHANG); tries++)
		poll(NULL, 0, 1);
}

enum outcome ask_in_child(const struct arguments *a, struct message *message, struct answer *answer,
			  struct reason *why)
{
	const int64_t start = clock_ms();
	struct report report = {.outcome = OUTCOME_FAILED};
	int ends[2];
	size_t got;
	pid_t pid;

	message_identify(message);
	if (pipe2(ends, O_CLOEXEC)) {
		REASON(why, "pipe: %s", strerror(errno));
		return OUTCOME_FAILED;
	}
	pid = fork();
	if (!pid) {
		child(a, message, start, ends[1]);
		_exit(0);
	}
	/* Slurm kills the process group of a script that has ended, possibly before the child has run at all. */
	if (pid > 0 && outlives_deadline(message))
		(void)setpgid(pid, pid);
	close(ends[1]);
	got = pid > 0 ? collect(ends[0], &report, start + a->timeout) : 0;
	if (pid < 0)
		REASON(why, "fork: %s", strerror(errno));
	close(ends[0]);
	if (pid < 0)
		return OUTCOME_FAILED;
	if (got || !outlives_deadline(message))
		end(pid);
	else
		(void)waitpid(pid, NULL, WNOHANG);
	report.text[sizeof(report.text) - 1] = '\0';
	if (!got)
		REASON(why, "no answer within %u ms", a->timeout);
	else if (report.outcome == OUTCOME_FAILED)
		REASON(why, "%.*s", (int)sizeof(why->text) - 1, report.text);
	else if (report.outcome == OUTCOME_ANSWERED && !answer_parse(answer, report.text))
		REASON(why, "the answer of %.200s does not follow PROTOCOL.md", a->agent);
	else
		return (enum outcome)report.outcome;
	return OUTCOME_FAILED;
}
