/* What is the same for prolog, epilog and steps: arguments, the message's head, what comes of it. */
#include <string.h>
#include <sys/types.h>

#include "hooks.h"

void tell_read(struct arguments *arguments, int count, char **words)
{
	struct reason why;

	arguments_default(arguments);
	for (int i = 0; i < count; i++)
		if (!arguments_take(arguments, words[i], &why))
			SAY_ERROR("plugstack.conf: %s", why.text);
}

bool tell_about(spank_t spank, struct message *message)
{
	uid_t user;

	message->user = spank_get_item(spank, S_JOB_UID, &user) == ESPANK_SUCCESS ? (int64_t)user : -1;
	return spank_get_item(spank, S_JOB_ID, &message->job) == ESPANK_SUCCESS;
}

int tell(const struct arguments *arguments, struct message *message, struct environment *environment)
{
	struct answer answer;
	struct reason why = {.text = ""};
	enum heard heard;

	if (!*arguments->agent && !*arguments->spool)
		return 0; /* the controller's hooks speak, or nobody does */
	heard = talk(arguments, message, &answer, &why);
	switch (heard) {
	case HEARD_NOTHING:
		SAY("%s of job %u was not told: %s", message->event, message->job, why.text);
		return -1;
	case HEARD_SENT:
	case HEARD_SPOOLED:
		if (arguments->debug)
			SAY("%s of job %u %s %s", message->event, message->job,
			    heard == HEARD_SENT ? "went to" : "is in",
			    heard == HEARD_SENT ? arguments->agent : arguments->spool);
		return 0;
	case HEARD_ANSWER:
		break;
	}
	if (!answer.ok)
		SAY("%s of job %u was refused: %s", message->event, message->job, answer.error);
	else if (arguments->debug)
		SAY("%s of job %u was told, %u variables came back", message->event, message->job,
		    answer.env.count);
	if (*answer.note)
		SAY("job %u has no routing key: %s", message->job, answer.note);
	*environment = answer.env;
	if (answer.ok && !environment_keep(environment, arguments->state, message->job, &why))
		SAY("the answer for job %u is lost: %s", message->job, why.text);
	return answer.ok ? (int)answer.wait : 0;
}
