#include "report_event.h"

#include "ask_in_child.h"
#include "environment_file.h"
#include "log.h"

int report_event(const struct arguments *arguments, struct message *message, struct environment *environment)
{
	const char *event = message->event;
	struct answer answer;
	struct reason why = {.text = ""};

	switch (ask_in_child(arguments, message, &answer, &why)) {
	case OUTCOME_FAILED:
		log_info("%s of job %u was not reported: %s", event, message->job, why.text);
		return -1;
	case OUTCOME_SENT:
		if (arguments->debug)
			log_info("%s of job %u was sent to %s", event, message->job, arguments->agent);
		return 0;
	case OUTCOME_ANSWERED:
		break;
	}
	if (!answer.ok) {
		log_info("%s of job %u was refused: %s", event, message->job, answer.error);
		environment->count = 0;
		return 0;
	}
	if (arguments->debug)
		log_info("%s of job %u was reported; the agent answered with %u variable(s)", event, message->job,
			 answer.env.count);
	if (*answer.note)
		log_info("job %u has no routing key: %s", message->job, answer.note);
	*environment = answer.env;
	if (*arguments->state && !environment_store(environment, arguments->state, message->job, &why))
		log_info("cannot store the answer for job %u: %s", message->job, why.text);
	return (int)answer.wait;
}
