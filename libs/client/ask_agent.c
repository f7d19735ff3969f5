#include "ask_agent.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "connection.h"
#include "credential.h"

/* The kernel knows who listens at the other end of a Unix socket; elsewhere the configured name has to do. */
static char *sign(const struct agent_address *agent, int connection, const char *payload, size_t length,
		  struct reason *why)
{
	const int64_t peer = connection_peer(connection);
	const int64_t reader = peer >= 0 ? peer : credential_reader(agent->user);

	return credential_make(agent->munge_socket, payload, length, reader, why);
}

enum ask_result ask_agent(const struct agent_address *agent, const char *payload, size_t length,
			  int64_t send_deadline, int64_t answer_deadline, char answer[ANSWER_SIZE],
			  struct reason *why)
{
	const enum ask_result expected = answer ? ASK_ANSWERED : ASK_SENT;
	enum ask_result result = ASK_FAILED;
	struct reason inner = {.text = ""};
	const int connection = connection_open(agent->address, send_deadline, &inner);
	char *credential = connection < 0 ? NULL : sign(agent, connection, payload, length, why);
	const size_t size = credential ? strlen(credential) : 0;

	if (credential) {
		credential[size] = '\n'; /* replaces the '\0': from here on its length is known */
		if (connection_send(connection, credential, size + 1, send_deadline, &inner))
			result = ASK_SENT;
		if (result == ASK_SENT && answer &&
		    connection_read_answer(connection, answer, ANSWER_SIZE, answer_deadline, &inner))
			result = ASK_ANSWERED;
	}
	if (result != expected && (connection < 0 || credential)) /* sign() gives its own reason */
		REASON(why, "%.200s: %.200s", agent->address, inner.text);
	free(credential);
	if (connection >= 0)
		close(connection);
	return result;
}
