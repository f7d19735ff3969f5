/* The state of a subscriber, and the functions that the library's files call of each other. */
#pragma once
#include <pthread.h>

#include "message.h"
#include "queue_pairs.h"
#include "rules.h"
#include "sa.h"
#include "sar_migrate.h"
#include "agent_thread.h"

/* The request that the agent thread is working on. */
enum request { REQUEST_NONE, REQUEST_SUBSCRIBE, REQUEST_ACK, REQUEST_UNSUBSCRIBE };

struct sar_migrate {
	pthread_mutex_t mutex; /* guards all below except the descriptors, which never change */
	int epoll, timer, wake;
	pthread_t thread;
	bool threaded, stopping;

	uint32_t job;
	char subscriber[ID_SIZE];
	struct rules rules;
	struct queue_pairs queue_pairs;
	uint64_t sent_back; /* the update by which the queue pairs were sent back to offset 0 */
	struct reason agent_problem, sa_problem, qp_problem;

	struct agent_thread *agent_thread;
	enum request request;
	int64_t request_sent_at, ask_at, retry;
	uint64_t request_update;
	enum stage request_stage;
	bool unsubscribed;

	struct sa *sa; /* NULL: no notices; only the agent announces updates */
	int64_t inform_at; /* when the SA is asked next for its notices */
	bool informed;	   /* it has granted the last request */

	int trace; /* descriptor of the trace file; -1: none */
};

/* trace.c: writes one line. `members` has further JSON members, each beginning with a comma, or is "". */
void trace(struct sar_migrate *m, const char *event, const char *members, ...) __attribute__((format(printf, 3, 4)));
/* subscription.c: sends the request that is due, and handles the answer to the last one */
void subscription_begin(struct sar_migrate *m, int64_t now);
void subscription_end(struct sar_migrate *m, int64_t now);
/* step.c; the caller holds the mutex */
void step(struct sar_migrate *m);
/* Handles a notice from the SA or from another process. */
void receive_notice(struct sar_migrate *m, const struct notice *notice);
