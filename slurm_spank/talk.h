/* Tell the agent, and hear what it answers, in a time that is kept whatever happens. */
#ifndef SAR_TALK_H
#define SAR_TALK_H
#include "answer.h"
#include "arguments.h"
#include "message.h"

enum heard {
	HEARD_ANSWER,  /* `answer` is filled */
	HEARD_SENT,    /* a job's end: nobody waits for an answer */
	HEARD_SPOOLED, /* the message lies in the spool folder */
	HEARD_NOTHING, /* `why` says why */
};

enum heard talk(const struct arguments *arguments, struct message *message, struct answer *answer,
		struct reason *why);

#endif
