/*
 * sar-notify: the same message from the controller's hooks. Always exits 0, and within 200 ms: with
 * another code Slurm would requeue or cancel the job.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "talk.h"
#include "traffic.h"

static const char usage[] =
	"sar-notify start|end [KEY=VALUE ...]: tell sar-agent that a job starts or ends.\n"
	"Call it from PrologSlurmctld and EpilogSlurmctld, whose environment says which job.\n"
	"  agent=HOST:PORT or agent=/PATH  where the agent listens\n"
	"  timeout=MS                      10 to 100, default 50\n"
	"  munge_socket=PATH               munged's, if it is not the default one\n"
	"  spool=FOLDER                    leave the message here if it cannot be sent\n"
	"  state=FOLDER                    leave what the agent answers here, as FOLDER/JOB, for the plugin's\n"
	"                                  env_file=FOLDER/%j; not kept unless given\n"
	"  debug=1                         say on stderr also what went well\n"
	"It always exits with 0, within 200 ms.\n";

static void out_of_time(int number)
{
	(void)number;
	_exit(0);
}

/* Slurm's number of this job, or 0. */
static uint32_t number_of(const char *variable, bool *found)
{
	const char *text = getenv(variable);
	unsigned long number;
	char *end;

	*found = false;
	if (!text || !*text || *text == '-')
		return 0;
	errno = 0;
	number = strtoul(text, &end, 10);
	*found = !*end && !errno && number <= UINT32_MAX;
	return *found ? (uint32_t)number : 0;
}

static void notify(const struct arguments *a, struct message *message)
{
	struct reason why = {.text = ""};
	struct answer answer;
	const enum heard heard = talk(a, message, &answer, &why);

	if (heard == HEARD_NOTHING)
		fprintf(stderr, "sar-notify: %s of job %" PRIu32 " was not told: %s\n", message->event,
			message->job, why.text);
	else if (heard == HEARD_ANSWER && !answer.ok)
		fprintf(stderr, "sar-notify: %s of job %" PRIu32 " was refused: %s\n", message->event,
			message->job, answer.error);
	else if (a->debug)
		fprintf(stderr, "sar-notify: %s of job %" PRIu32 " was told\n", message->event, message->job);
	if (heard == HEARD_ANSWER && answer.ok && *a->state &&
	    !environment_keep(&answer.env, a->state, message->job, &why))
		fprintf(stderr, "sar-notify: the answer is lost: %s\n", why.text);
}

int main(int count, char **words)
{
	const struct itimerval last = {.it_value.tv_usec = 180000};
	const char *event = count > 1 ? words[1] : "", *traffic = getenv("SPANK_SAR_TRAFFIC");
	struct message message = {.event = event, .nodes = getenv("SLURM_JOB_NODELIST")};
	struct arguments arguments;
	struct reason why;
	bool found;

	signal(SIGALRM, out_of_time);
	setitimer(ITIMER_REAL, &last, NULL);
	if (strcmp(event, "start") && strcmp(event, "end")) {
		fputs(usage, !strcmp(event, "--help") ? stdout : stderr);
		return 0;
	}
	arguments_default(&arguments);
	*arguments.state = '\0';
	for (int i = 2; i < count; i++)
		if (!arguments_take(&arguments, words[i], &why))
			fprintf(stderr, "sar-notify: %s\n", why.text);
	message.user = number_of("SLURM_JOB_UID", &found);
	if (!found)
		message.user = -1;
	message.job = number_of("SLURM_JOB_ID", &found);
	if (!found) {
		fputs("sar-notify: SLURM_JOB_ID is not set; call it from PrologSlurmctld or EpilogSlurmctld\n", stderr);
		return 0;
	}
	/* SPANK_ variables are the user's: sbatch --export could hold anything. */
	if (traffic && traffic_known(traffic))
		message.traffic = traffic;
	if (*arguments.state)
		environment_forget(arguments.state, message.job);
	notify(&arguments, &message);
	return 0;
}
