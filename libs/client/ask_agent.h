/*
 * One request to the agent: connect, sign with munge, send one line, read the answer. The SPANK plugin calls this
 * from a child process, libsar_migrate from a thread of its own, libsar_key from the caller's thread.
 */
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "answer.h"
#include "reason.h"

#define AGENT_SOCKET "/run/sar-agent/events.sock"
#define AGENT_USER   "sar-agent"

struct agent_address {
	const char *address;	  /* HOST:PORT, [IPV6]:PORT, or the path of a Unix socket */
	const char *munge_socket; /* the socket of munged; "" for munge's default */
	const char *user;	  /* the account of the agent; nobody else can decode the credential; "" for anybody */
};

enum ask_result {
	ASK_FAILED,   /* the request was not sent; `why` gives the reason */
	ASK_SENT,     /* the request was sent; if an answer was requested, it did not arrive, and `why` gives the reason */
	ASK_ANSWERED, /* `answer` holds its lines */
};

/*
 * Sends `payload` until `send_deadline` and waits for the answer until `answer_deadline` (clock_ms). With `answer`
 * NULL it does not wait for an answer. munge and the name service know no deadline, so either may make the call
 * take longer. Each call makes a new credential, because munge accepts a credential only once.
 */
enum ask_result ask_agent(const struct agent_address *agent, const char *payload, size_t length,
			  int64_t send_deadline, int64_t answer_deadline, char answer[ANSWER_SIZE],
			  struct reason *why);
