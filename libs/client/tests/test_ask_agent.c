/* Requests to an agent that is missing or misbehaves; with munge and a real agent: tests/live. */
#include "../ask_agent.h"

#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "../connection.h"
#include "check.h"

static char folder[] = "/tmp/sar-client-test-XXXXXX", path[64];

static void refused(const char *address, const char *munge_socket, const char *expected)
{
	const struct agent_address agent = {address, munge_socket, ""};
	const int64_t deadline = clock_ms() + 2000;
	struct reason why = {.text = ""};
	char answer[ANSWER_SIZE];

	CHECK(ask_agent(&agent, "{}", 2, deadline, deadline, answer, &why) == ASK_FAILED, "%s", address);
	CHECK(strstr(why.text, expected), "%s: \"%s\"", address, why.text);
}

/* Accepts one connection, sends what `argument` points to, each @ as a zero byte, and closes it. */
static void *serve(void *argument)
{
	const char *const *text = argument;
	const int listener = (int)(intptr_t)text[1], client = accept(listener, NULL, NULL);

	char bytes[64];
	const size_t length = (size_t)snprintf(bytes, sizeof(bytes), "%s", text[0]);

	for (char *zero = bytes; (zero = strchr(zero, '@'));)
		*zero = '\0';
	if (send(client, bytes, length, MSG_NOSIGNAL) < 0)
		perror("send");
	close(client);
	return NULL;
}

static int listen_there(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	const int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	strcpy(address.sun_path, path);
	CHECK(!bind(listener, (const void *)&address, sizeof(address)) && !listen(listener, 4), "%s", path);
	return listener;
}

static void lines(int listener)
{
	static const struct {
		const char *sent, *line, *error;
	} cases[] = {
		{"ok\nwait 1\n\nignored", "ok\nwait 1", ""},
		{"ok\nwait 1\n", NULL, "closed the connection"},
		{"", NULL, "closed the connection"},
		{"ok\n@\n\n", NULL, "zero byte"},
		{"0123456789abcdef0123456789abcdef", NULL, "longer than 15 bytes"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const char *argument[] = {cases[i].sent, (const char *)(intptr_t)listener};
		struct reason why = {.text = ""};
		char line[16];
		pthread_t thread;
		bool read;
		int connection;

		pthread_create(&thread, NULL, serve, argument);
		connection = connection_open(path, clock_ms() + 5000, &why);
		CHECK(connection >= 0 && connection_peer(connection) == (int64_t)geteuid(), "%s", why.text);
		read = connection_read_answer(connection, line, sizeof(line), clock_ms() + 5000, &why);
		CHECK(read == !!cases[i].line && (!read || !strcmp(line, cases[i].line)), "%zu", i);
		CHECK(strstr(why.text, cases[i].error), "\"%s\"", why.text);
		close(connection);
		pthread_join(thread, NULL);
	}
}

static void deadlines(void)
{
	struct reason why = {.text = ""};
	const int connection = connection_open(path, clock_ms() + 5000, &why);
	const int64_t start = clock_ms();
	char line[16];

	CHECK(!connection_read_answer(connection, line, sizeof(line), start + 30, &why), "nobody answers");
	CHECK(clock_ms() - start >= 30 && !strcmp(why.text, "timed out"), "%s", why.text);
	close(connection);
}

int main(void)
{
	char deep[200];
	int listener;

	CHECK(mkdtemp(folder), "%s", folder);
	snprintf(path, sizeof(path), "%s/agent", folder);
	refused(path, "", "agent: No such file or directory");
	refused("nowhere", "", "nowhere: not of the form HOST:PORT");
	memset(deep, '/', sizeof(deep) - 1);
	deep[sizeof(deep) - 1] = '\0';
	refused(deep, "", "too long for a Unix socket");
	listener = listen_there();
	lines(listener);
	deadlines();
	refused(path, "/nonexistent/munge", "munge");
	close(listener);
	refused(path, "", "Connection refused");
	CHECK(!unlink(path) && !rmdir(folder), "nothing is left");
	return checked("ask_agent");
}
