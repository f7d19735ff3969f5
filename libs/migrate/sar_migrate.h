/*
 * Subscribes a process to five-phase updates of the forwarding tables (sar-2016, Section 3.3), and moves its queue pairs
 * off the tables while these change. README.md has an example, PROTOCOL.md the messages.
 *
 * Made for the asynchronous thread of a communication library: wait for one descriptor, then call sar_migrate_step(). No
 * call blocks except sar_migrate_close(). All calls except sar_migrate_open() may come from any thread.
 */
#ifndef SAR_MIGRATE_H
#define SAR_MIGRATE_H
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct sar_migrate;

struct sar_qp_state {
	unsigned offset, alternate; /* LID offsets of the path and of the alternate path */
	int armed;
};

/*
 * The operations on a queue pair; `qp` is the pointer given to sar_migrate_add(). Each returns 0 or a negative errno. An
 * operation that fails is tried again, and until it succeeds nothing is acknowledged. They are called with the library's
 * lock held, so they must not call the library.
 */
struct sar_qp_ops {
	/* Load the path of this LID offset as the alternate path, to be armed; it may equal the current path. */
	int (*load)(void *qp, unsigned offset);
	/* Report the current path and the alternate path. */
	int (*query)(void *qp, struct sar_qp_state *state);
	/* Stop sending. Call sar_migrate_drained() when all requests are acknowledged. */
	int (*drain)(void *qp);
	/* After the drain: migrate to the alternate path, which has this LID offset. 0 if it is there already. */
	int (*migrate)(void *qp, unsigned offset);
	/* Send again. */
	int (*resume)(void *qp);
};

struct sar_migrate_options {
	const char *agent;	  /* where the agent listens: HOST:PORT or the path of a Unix socket */
	const char *munge_socket; /* NULL: munge's default */
	uint32_t job;		  /* Slurm's raw job id */
	int notices;		  /* receive notices from the SA, too; needs umad, so never for users (README.md) */
	const char *ca;		  /* the HCA that receives notices; NULL: the first */
	int port;		  /* its port; 0: the first active one */
	int simulated;		  /* the fabric is ibsim's */
	const char *trace;	  /* a file for the trace; NULL: none */
};

/* Returns NULL, and a sentence in `error`, on failure. It is no failure if the agent or the SM does not answer yet. */
struct sar_migrate *sar_migrate_open(const struct sar_migrate_options *options, const struct sar_qp_ops *ops,
				     char *error, size_t room);

/* A descriptor that is readable when sar_migrate_step() has something to do, deadlines included. It never changes. */
int sar_migrate_fd(const struct sar_migrate *m);
void sar_migrate_step(struct sar_migrate *m);
/* Alternatively, a thread of the library waits and steps until sar_migrate_close(). Returns 0 or a negative errno. */
int sar_migrate_thread(struct sar_migrate *m);

/* The LID offset for new queue pairs, for the path bits of the source as well as of the destination. */
unsigned sar_migrate_offset(struct sar_migrate *m);
/* Adds a queue pair that is ready to send and has sent nothing yet. -ESTALE if `offset` is out of date: connect the queue
 * pair again with the new one. */
int sar_migrate_add(struct sar_migrate *m, void *qp, unsigned offset);
/* The queue pair was destroyed, or will not send any more. */
void sar_migrate_remove(struct sar_migrate *m, void *qp);
/* The send queue of the queue pair is drained (IBV_EVENT_SQ_DRAINED). */
void sar_migrate_drained(struct sar_migrate *m, void *qp);
/* The queue pair has migrated to its alternate path because its peer did (IBV_EVENT_PATH_MIG). */
void sar_migrate_pulled(struct sar_migrate *m, void *qp);
/* The newest message about an update, from the SM, the agent or another process. Returns 0 for none, 1 unpath, 2 repath. */
int sar_migrate_heard(struct sar_migrate *m, uint64_t *update, uint64_t *generation);
/* Passes on what sar_migrate_heard() returned in another process of the job. */
void sar_migrate_notice(struct sar_migrate *m, int kind, uint64_t update, uint64_t generation);

/* The current problem, as one sentence; "" if there is none. */
void sar_migrate_problem(struct sar_migrate *m, char *text, size_t room);

/* Unsubscribes, which takes two seconds at most, and frees `m`. While there are queue pairs, it returns -EBUSY and does
 * nothing. */
int sar_migrate_close(struct sar_migrate *m);

#ifdef __cplusplus
}
#endif
#endif
