/* The end of a job is also reported where the machine is so busy that Slurm's script ends before the child first runs. */
#include "../ask_in_child.h"

#include <pthread.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
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
	snprintf(arguments.agent, sizeof(arguments.agent), "%s/agent", folder);
	setpgid(0, 0);
	pthread_atfork(NULL, NULL, starved);
	_exit(ask_in_child(&arguments, &message, &answer, &why) != OUTCOME_FAILED);
}

/* A socket where the child connects; nobody answers. */
static int listen_there(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	const int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s/agent", folder);
	CHECK(!bind(listener, (const void *)&address, sizeof(address)) && !listen(listener, 4), "%s", folder);
	return listener;
}

int main(void)
{
	char command[128];
	struct pollfd arrives = {.events = POLLIN};
	int status = -1;
	pid_t pid;

	CHECK(mkdtemp(folder), "%s", folder);
	arrives.fd = listen_there();
	pid = fork();
	if (!pid)
		script();
	CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && !WEXITSTATUS(status), "%d", status);
	(void)killpg(pid, SIGKILL); /* as Slurm does */
	CHECK(poll(&arrives, 1, 2000) == 1, "the end of the job is lost");
	snprintf(command, sizeof(command), "rm -r %s", folder);
	CHECK(!system(command), "%s", command);
	return 0;
}
