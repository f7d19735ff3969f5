/*
 * sar-notify: reports a job's event from the controller's hooks. It always exits with 0, and within 200 ms: after any
 * other exit code Slurm would requeue or cancel the job.
 */
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "environment_file.h"
#include "log.h"
#include "report_event.h"
#include "traffic.h"

static const char usage[] =
	"usage: sar-notify start|end [KEY=VALUE ...]\n"
	"Reports to sar-agent that a job starts or ends. Call it from PrologSlurmctld and EpilogSlurmctld, whose\n"
	"environment names the job.\n"
	"  agent=HOST:PORT or agent=/PATH  where the agent listens\n"
	"  agent_user=USER                 the agent's account, which alone can decode the message (default\n"
	"                                  sar-agent); \"\" lets every user decode it\n"
	"  timeout=MS                      how long to wait for the agent, 10 to 100 (default 50)\n"
	"  munge_socket=PATH               the socket of munged, if it is not munge's default\n"
	"  state=FOLDER                    store the agent's answer as FOLDER/JOB, for the plugin's\n"
	"                                  env_file=FOLDER/%j (default: do not store it)\n"
	"  debug=1                         also log what succeeded\n"
	"It logs to stderr, exits with 0 in any case, and runs for at most 200 ms.\n";

void log_line(enum log_level level, const char *format, ...)
{
	va_list arguments;

	(void)level;
	va_start(arguments, format);
	fputs("sar-notify: ", stderr);
	vfprintf(stderr, format, arguments);
	fputc('\n', stderr);
	va_end(arguments);
}

static void out_of_time(int number)
{
	static const char line[] = "sar-notify: perhaps this event was not reported: 180 ms are over\n";

	(void)number;
	(void)!write(STDERR_FILENO, line, sizeof(line) - 1);
	_exit(0);
}

int main(int argc, char **argv)
{
	const struct itimerval lifetime = {.it_value.tv_usec = 180000};
	const char *event = argc > 1 ? argv[1] : "", *traffic = getenv("SPANK_SAR_TRAFFIC");
	struct message message = {.event = event, .nodes = getenv("SLURM_JOB_NODELIST")};
	struct environment unused = {.count = 0};
	struct arguments arguments;
	struct reason why;
	uint32_t user;

	signal(SIGALRM, out_of_time);
	setitimer(ITIMER_REAL, &lifetime, NULL);
	if (strcmp(event, "start") && strcmp(event, "end")) {
		fputs(usage, !strcmp(event, "--help") ? stdout : stderr);
		return 0;
	}
	arguments_default(&arguments);
	*arguments.state = '\0';
	for (int i = 2; i < argc; i++)
		if (!arguments_take(&arguments, argv[i], &why))
			log_error("%s", why.text);
	message.user = environment_number("SLURM_JOB_UID", &user) ? (int64_t)user : -1;
	if (!environment_number("SLURM_JOB_ID", &message.job)) {
		log_error("SLURM_JOB_ID is not set; call sar-notify from PrologSlurmctld or EpilogSlurmctld");
		return 0;
	}
	/* The user sets SPANK_ variables: with sbatch --export they may hold anything. */
	if (traffic && traffic_known(traffic))
		message.traffic = traffic;
	if (*arguments.state)
		environment_forget(arguments.state, message.job, !strcmp(event, "start"));
	(void)report_event(&arguments, &message, &unused);
	setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL);
	return 0;
}
