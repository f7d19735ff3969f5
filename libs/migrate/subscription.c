/* The subscription at the agent: subscribe and renew, acknowledge, unsubscribe; one request at a time. */
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "library.h"
#include "connection.h"

#define LONGEST_PATIENCE 5000 /* ms for one request */
#define FIRST_RETRY 100	      /* ms, doubled each time */
#define LAST_RETRY 2000

static const char *phase_of(enum stage stage)
{
	return stage == STAGE_AWAY ? "unpath" : "repath";
}

static bool stage_of(const char *phase, enum stage *stage)
{
	const bool away = !strcmp(phase, "unpath") || !strcmp(phase, "install");

	*stage = away ? STAGE_AWAY : STAGE_BACK;
	return away || !strcmp(phase, "repath") || !strcmp(phase, "idle");
}

static void send_request(struct sar_migrate *m, enum request request, int64_t now)
{
	static const char *const events[] = {"", "subscribe", "ack", "unsubscribe"};
	struct message message = {
		.event = events[request],
		.job = m->job,
		.user = getuid(),
		.subscriber = m->subscriber,
		.phase = request == REQUEST_ACK ? phase_of(m->rules.stage) : NULL,
		.update = m->rules.update,
		.offset = m->rules.offset,
	};
	char payload[PAYLOAD_SIZE];
	size_t length;
	const int64_t lease = m->rules.lease;

	message_identify(&message);
	length = message_encode(&message, payload, sizeof(payload));
	m->request = request;
	m->request_sent_at = now;
	m->request_update = m->rules.update;
	m->request_stage = m->rules.stage;
	trace(m, events[request], ",\"update\":%" PRIu64 ",\"offset\":%u%s%s%s", m->rules.update, m->rules.offset,
	      message.phase ? ",\"phase\":\"" : "", message.phase ? message.phase : "", message.phase ? "\"" : "");
	agent_thread_ask(m->agent_thread, payload, length, lease && lease / 4 < LONGEST_PATIENCE ? lease / 4 : LONGEST_PATIENCE);
}

void subscription_begin(struct sar_migrate *m, int64_t now)
{
	if (m->request != REQUEST_NONE || m->unsubscribed)
		return;
	if (m->stopping)
		send_request(m, REQUEST_UNSUBSCRIBE, now);
	else if (now < m->ask_at && (m->retry || !rules_ack_due(&m->rules)))
		return; /* an acknowledgement is sent at once, unless the last request failed */
	else
		send_request(m, rules_ack_due(&m->rules) ? REQUEST_ACK : REQUEST_SUBSCRIBE, now);
}

static void subscribed(struct sar_migrate *m, const struct answer *answer, int64_t now)
{
	enum stage stage;
	bool valid;

	if (!stage_of(answer->phase, &stage) || !answer->lease) {
		REASON(&m->agent_problem, "the agent does not support five-phase updates");
		return;
	}
	valid = rules_lease(&m->rules, m->request_sent_at, answer->lease, now);
	trace(m, "answer", ",\"phase\":\"%s\",\"update\":%" PRIu64 ",\"generation\":%" PRIu64 ",\"counts\":%s",
	      answer->phase, answer->update, answer->generation, valid ? "true" : "false");
	if (!valid)
		return;
	(void)rules_receive(&m->rules, answer->update, stage, answer->generation);
	/* An agent that lost our acknowledgement gets it again; phases that need none count as acknowledged. */
	if (answer->update == m->rules.update && stage == m->rules.stage)
		m->rules.acked = !strcmp(answer->phase, "idle") || !strcmp(answer->phase, "install");
}

static void handle_answer(struct sar_migrate *m, const struct answer *answer, int64_t now)
{
	switch (m->request) {
	case REQUEST_SUBSCRIBE:
		subscribed(m, answer, now);
		break;
	case REQUEST_ACK:
		if (m->request_update == m->rules.update && m->request_stage == m->rules.stage)
			m->rules.acked = true;
		break;
	case REQUEST_UNSUBSCRIBE:
		m->unsubscribed = true;
		break;
	case REQUEST_NONE:
		break;
	}
}

void subscription_end(struct sar_migrate *m, int64_t now)
{
	struct answer answer;
	struct reason why = {.text = ""};
	int64_t renew_at;

	if (m->request == REQUEST_NONE || !agent_thread_result(m->agent_thread, &answer, &why))
		return;
	if (!*why.text && !answer.ok)
		REASON(&why, "the agent refuses: %.200s", *answer.error ? answer.error : "no reason given");
	m->agent_problem = why;
	if (*why.text) {
		m->retry = m->retry ? 2 * m->retry : FIRST_RETRY;
		m->retry = m->retry > LAST_RETRY ? LAST_RETRY : m->retry;
		m->ask_at = now + m->retry;
	} else {
		handle_answer(m, &answer, now);
		m->retry = 0;
		renew_at = rules_renew_at(&m->rules, m->request_sent_at, m->sa && sa_informed(m->sa));
		if (m->request == REQUEST_SUBSCRIBE || renew_at < m->ask_at)
			m->ask_at = renew_at;
	}
	m->request = REQUEST_NONE;
}
