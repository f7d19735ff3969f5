/* What the parts of the library share. */
#ifndef SAR_LIBRARY_H
#define SAR_LIBRARY_H
#include <pthread.h>

#include "message.h"
#include "queue_pairs.h"
#include "rules.h"
#include "sa.h"
#include "sar_migrate.h"
#include "agent_thread.h"

enum request { REQUEST_NONE, REQUEST_SUBSCRIBE, REQUEST_ACK, REQUEST_UNSUBSCRIBE };

struct sar_migrate {
	pthread_mutex_t mutex; /* guards all below but the descriptors, which stay */
	int epoll, timer, wake;
	pthread_t thread;
	bool threaded, stopping;

	uint32_t job;
	char subscriber[ID_SIZE];
	struct rules rules;
	struct queue_pairs queue_pairs;
	uint64_t sent_back; /* the update by which the paths were sent back to offset 0 */
	struct reason agent_problem, sa_problem, qp_problem;

	struct agent_thread *agent_thread;
	enum request request; /* what the agent_thread is at */
	int64_t request_sent_at, ask_at, retry;
	uint64_t request_update;
	enum stage request_stage;
	bool unsubscribed;

	struct sa *sa; /* NULL: the door alone tells */
	int64_t inform_at;

	int trace; /* -1: none */
};

/* trace.c: one JSON line. `more` is further members, beginning with a comma, or "". */
void trace(struct sar_migrate *m, const char *event, const char *more, ...) __attribute__((format(printf, 3, 4)));
/* exchange.c */
void subscription_begin(struct sar_migrate *m, int64_t now);
void subscription_end(struct sar_migrate *m, int64_t now);
/* step.c, with the mutex held */
void step(struct sar_migrate *m);
/* A notice of ours, whoever told of it. */
void hear_notice(struct sar_migrate *m, const struct notice *notice);

#endif
