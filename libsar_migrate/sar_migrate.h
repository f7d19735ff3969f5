/*
 * Subscribe a process to updates of InfiniBand's tables in five phases (sar-2016, Section 3.3), and move its
 * queue pairs out of their way: README.md shows how in thirty lines, PROTOCOL.md what is said.
 *
 * For the asynchronous thread of a communication library: wait for one descriptor, then step. No call blocks
 * but sar_migrate_close. All calls but sar_migrate_open may come from any thread.
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
 * What is done to a queue pair; `qp` is what sar_migrate_add was given. Each is 0 or a negative errno; one that
 * fails is tried again, and until then nothing is acknowledged. Called with the library's lock held: they must
 * not call the library. verbs.c has those for libibverbs.
 */
struct sar_qp_ops {
	/* Make the path of this LID offset, perhaps the one it is on, the alternate path, to be armed. */
	int (*load)(void *qp, unsigned offset);
	/* Where it is, and where it would go. */
	int (*look)(void *qp, struct sar_qp_state *state);
	/* Stop sending; sar_migrate_drained() is called once all that was sent is answered. */
	int (*drain)(void *qp);
	/* Drained: make the alternate path, which is of this LID offset, the path. 0 if it is already. */
	int (*migrate)(void *qp, unsigned offset);
	/* Send again. */
	int (*resume)(void *qp);
};

struct sar_migrate_options {
	const char *agent;	  /* the agent's door: HOST:PORT or the path of a Unix socket */
	const char *munge_socket; /* NULL: munge's default */
	uint32_t job;		  /* Slurm's raw job id */
	int notices;		  /* hear the SA, too: wants umad, so never for users (README.md); else the door only */
	const char *ca;		  /* the HCA for that; NULL: the first */
	int port;		  /* its port; 0: the first that is active */
	int simulated;		  /* the fabric is ibsim's */
	const char *trace;	  /* a file for JSON lines of what is said and done; NULL: none */
};

/* NULL, and one sentence in `error`, if there is nothing to work with. An agent or SM that is away is waited for. */
struct sar_migrate *sar_migrate_open(const struct sar_migrate_options *options, const struct sar_qp_ops *ops,
				     char *error, size_t room);

/* Readable when sar_migrate_step has something to do, a deadline included. It stays the same. */
int sar_migrate_fd(const struct sar_migrate *m);
void sar_migrate_step(struct sar_migrate *m);
/* Or have a thread of the library do both until it is closed: 0 or a negative errno. */
int sar_migrate_thread(struct sar_migrate *m);

/* The LID offset that new queue pairs are to use, path bits of the source as well as of the destination. */
unsigned sar_migrate_offset(struct sar_migrate *m);
/* A queue pair that can send, and has sent nothing yet. -ESTALE if `offset` is not the one to use any more:
 * connect it anew. */
int sar_migrate_add(struct sar_migrate *m, void *qp, unsigned offset);
/* It is gone, or will not send any more. */
void sar_migrate_remove(struct sar_migrate *m, void *qp);
/* Its send queue is drained (IBV_EVENT_SQ_DRAINED). */
void sar_migrate_drained(struct sar_migrate *m, void *qp);
/* It has changed over to the alternate path by itself, as its peer did (IBV_EVENT_PATH_MIG). */
void sar_migrate_pulled(struct sar_migrate *m, void *qp);
/* The newest that was heard of updates, from the SM, the door or another process: 0 nothing, 1 unpath, 2 repath. */
int sar_migrate_heard(struct sar_migrate *m, uint64_t *update, uint64_t *generation);
/* That another process of the job heard it. */
void sar_migrate_notice(struct sar_migrate *m, int kind, uint64_t update, uint64_t generation);

/* What is wrong at the moment, one sentence; "" if nothing is. */
void sar_migrate_trouble(struct sar_migrate *m, char *text, size_t room);

/* Unsubscribes, for at most two seconds. -EBUSY, and nothing done, while there are queue pairs. */
int sar_migrate_close(struct sar_migrate *m);

#ifdef __cplusplus
}
#endif
#endif
