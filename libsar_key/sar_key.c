/* A request is asked again with the same words until it is answered (slurm_spank/KEYS.md). */
#include "sar_key.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "answer.h"
#include "credential.h"
#include "message.h"
#include "stream.h"

#define AGENT	"/run/sar-agent/events.sock"
#define LONGEST 65536

static const char *variable(const char *name, const char *otherwise)
{
	const char *value = getenv(name);

	return value && *value ? value : otherwise;
}

/* Slurm's number of this job, or 0. */
static uint32_t own_job(void)
{
	const char *text = variable("SLURM_JOB_ID", "0");
	char *end;
	unsigned long number;

	errno = 0;
	number = strtoul(text, &end, 10);
	return *text >= '0' && *text <= '9' && !*end && !errno && number <= UINT32_MAX ? (uint32_t)number : 0;
}

/* Signed anew each time: munge takes no credential twice. */
static bool exchange(struct message *message, char *payload, int64_t deadline, struct answer *answer,
		     struct reason *why)
{
	char line[ANSWER_SIZE], *credential;
	size_t length, size;
	bool heard;
	int stream;

	message_identify(message);
	length = message_write(message, payload, LONGEST + 1);
	if (!length)
		return REASON(why, "a request has at most %d bytes", LONGEST), false;
	credential = credential_make(variable("SAR_MUNGE_SOCKET", ""), payload, length, why);
	if (!credential)
		return false;
	size = strlen(credential);
	credential[size] = '\n'; /* in place of its '\0': a line is counted, not ended */
	stream = stream_open(variable("SAR_AGENT", AGENT), deadline, why);
	heard = stream >= 0 && stream_send(stream, credential, size + 1, deadline, why) &&
		stream_line(stream, line, sizeof(line), deadline, why);
	if (stream >= 0)
		close(stream);
	free(credential);
	if (heard && !answer_read(answer, line))
		return REASON(why, "the agent did not answer as KEYS.md has it"), false;
	return heard;
}

static enum sar_key_result ask(struct message *message, unsigned milliseconds, struct answer *answer,
			       struct reason *why)
{
	const int64_t deadline = clock_ms() + milliseconds;
	char *payload = malloc(LONGEST + 1);

	*answer = (struct answer){.ok = false};
	message->job = own_job();
	message->user = (int64_t)getuid();
	message->nodes = variable("SLURM_STEP_NODELIST", NULL);
	message->tasks = variable("SLURM_STEP_TASKS_PER_NODE", variable("SLURM_TASKS_PER_NODE", NULL));
	if (!payload || !message->job) {
		REASON(why, payload ? "SLURM_JOB_ID is not set: this is no job" : "no memory");
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
