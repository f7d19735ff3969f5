/* The end of a job is also reported where the machine is so busy that Slurm's script ends before the child first runs. */
#include "../ask_in_child.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

#define LATE 300 /* milliseconds; the deadline is 10 */

static char folder[] = "/tmp/sar-spank-test-XXXXXX";

static void starved(void)
{
	usleep(LATE * 1000);
}

/* Like Slurm's process for a prolog or epilog: leader of a process group. */
static void script(void)
{
	struct message message = {.event = "end", .job = 7, .user = 0, .nodes = "n1", .traffic = ""};
	struct arguments arguments;
	struct reason why = {.text = ""};
	struct answer answer;

	arguments_default(&arguments);
	arguments.timeout = LEAST_TIMEOUT;
	snprintf(arguments.spool, sizeof(arguments.spool), "%s", folder);
	setpgid(0, 0);
	pthread_atfork(NULL, NULL, starved);
	_exit(ask_in_child(&arguments, &message, &answer, &why) != OUTCOME_FAILED);
}

static bool spooled(void)
{
	char command[128];

	snprintf(command, sizeof(command), "ls %s/*.json >/dev/null 2>&1", folder);
	return !system(command);
}

int main(void)
{
	char command[128];
	int status = -1;
	pid_t pid;

	CHECK(mkdtemp(folder), "%s", folder);
	pid = fork();
	if (!pid)
		script();
	CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && !WEXITSTATUS(status), "%d", status);
	(void)killpg(pid, SIGKILL); /* as Slurm does */
	for (int tries = 0; tries < 100 && !spooled(); tries++)
		usleep(20000);
	CHECK(spooled(), "the end of the job is lost");
	snprintf(command, sizeof(command), "rm -r %s", folder);
	CHECK(!system(command), "%s", command);
	return 0;
}
