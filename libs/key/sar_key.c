/* A request is sent again unchanged while the agent answers "waiting" (slurm_spank/KEYS.md). */
#include "sar_key.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ask_agent.h"
#include "connection.h"
#include "message.h"

#define LONGEST_REQUEST 65536

static const char *variable(const char *name, const char *fallback)
{
	const char *value = getenv(name);

	return value && *value ? value : fallback;
}

static bool exchange(struct message *message, char *payload, int64_t deadline, struct answer *answer,
		     struct reason *why)
{
	const struct agent_address agent = {
		.address = variable("SAR_AGENT", AGENT_SOCKET),
		.munge_socket = variable("SAR_MUNGE_SOCKET", ""),
		.user = variable("SAR_AGENT_USER", AGENT_USER),
	};
	char line[ANSWER_SIZE];
	size_t length;

	message_identify(message);
	length = message_encode(message, payload, LONGEST_REQUEST + 1);
	if (!length)
		return REASON(why, "a request has at most %d bytes", LONGEST_REQUEST), false;
	if (ask_agent(&agent, payload, length, deadline, deadline, line, why) != ASK_ANSWERED)
		return false;
	if (answer_parse(answer, line))
		return true;
	return REASON(why, "the agent's answer does not follow KEYS.md"), false;
}

static enum sar_key_result ask(struct message *message, unsigned milliseconds, struct answer *answer,
			       struct reason *why)
{
	const int64_t deadline = clock_ms() + milliseconds;
	char *payload = malloc(LONGEST_REQUEST + 1);

	*answer = (struct answer){.ok = false};
	(void)environment_number("SLURM_JOB_ID", &message->job);
	message->user = (int64_t)getuid();
	message->nodes = variable("SLURM_STEP_NODELIST", NULL);
	message->tasks = variable("SLURM_STEP_TASKS_PER_NODE", variable("SLURM_TASKS_PER_NODE", NULL));
	if (!payload || !message->job) {
		REASON(why, payload ? "SLURM_JOB_ID is not set: this process is not in a Slurm job" : "no memory");
		free(payload);
		return SAR_KEY_NONE;
	}
	while (exchange(message, payload, deadline, answer, why)) {
		if (!answer->ok || strcmp(answer->state, "waiting")) {
			free(payload);
			REASON(why, "%s", answer->ok ? answer->note : answer->error);
			if (!answer->ok)
				return SAR_KEY_WRONG;
			return strcmp(answer->state, "in_force") ? SAR_KEY_NONE : SAR_KEY_IN_FORCE;
		}
		if (clock_ms() + answer->wait >= deadline) {
			REASON(why, "the key was not in force within %u ms", milliseconds);
			break;
		}
		poll(NULL, 0, (int)answer->wait);
	}
	free(payload);
	answer->offset = 0;
	return SAR_KEY_NONE;
}

static enum sar_key_result request(struct sar_key *key, struct message *message, unsigned milliseconds)
{
	struct reason why = {.text = ""};
	struct answer answer;
	const enum sar_key_result result = ask(message, milliseconds, &answer, &why);

	*key = (struct sar_key){.offset = 0};
	if (result == SAR_KEY_IN_FORCE)
		*key = (struct sar_key){.offset = answer.offset, .own = answer.own, .total = answer.total};
	else
		snprintf(key->sentence, sizeof(key->sentence), "%.199s", why.text);
	return result;
}

enum sar_key_result sar_key_request(struct sar_key *key, const char *phase, const char *pattern,
				    unsigned milliseconds)
{
	struct message message = {.event = "key", .phase = phase, .traffic = pattern};

	return request(key, &message, milliseconds);
}

enum sar_key_result sar_key_request_pairs(struct sar_key *key, const char *phase, const int (*pairs)[2],
					  size_t count, unsigned milliseconds)
{
	struct message message = {.event = "key", .phase = phase, .pairs = *pairs, .pair_count = count};

	return request(key, &message, milliseconds);
}

int sar_key_done(const char *phase, unsigned milliseconds)
{
	struct message message = {.event = "key-done", .phase = phase};
	struct reason why = {.text = ""};
	struct answer answer;

	(void)ask(&message, milliseconds, &answer, &why);
	return answer.ok ? 0 : -1;
}
