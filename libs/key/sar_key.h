/*
 * Routing keys for an application, requested at the boundaries of its phases (RODRequest and RODDone of
 * routing-keys-2017). One process of the job makes the request and tells the others. Link with -lsar_key -ldl.
 *
 * If anything is missing (the agent, munge, a free LID offset), the result is offset 0, and the job runs as it would
 * have without this library. The environment variable SAR_AGENT says where the agent listens (a path or HOST:PORT;
 * default /run/sar-agent/events.sock), and SAR_MUNGE_SOCKET where munged does, if not in its default place. Any thread
 * may call these functions. They do not fork. A munged that hangs may delay a call beyond its time limit, because
 * munge's library knows no deadline.
 */
#ifndef SAR_KEY_H
#define SAR_KEY_H
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SAR_KEY_API __attribute__((visibility("default")))

enum sar_key_result {
	SAR_KEY_WRONG = -1,   /* the request is invalid: `sentence` gives the reason */
	SAR_KEY_NONE = 0,     /* no key: send with offset 0; `sentence` gives the reason */
	SAR_KEY_IN_FORCE = 1, /* the routes are in force: send with `offset` */
};

struct sar_key {
	unsigned offset;    /* LID offset to send with: UCX_IB_LID_PATH_BITS */
	unsigned own;	    /* the largest number of flows of this phase over one link */
	unsigned total;	    /* the largest number of flows of all keys over one link of this phase */
	char sentence[200]; /* "" if there is a key */
};

/* Requests routes for a phase whose pattern has a name ("ring", "stencil3d:4x4x4"), and waits for up to `milliseconds`.
 * A repeated request extends the lease. The ranks are those of this process's Slurm step. */
SAR_KEY_API enum sar_key_result sar_key_request(struct sar_key *key, const char *phase, const char *pattern,
				    unsigned milliseconds);

/* Requests routes for `count` pairs of ranks (from, to). The pairs can be free of contention only if each rank sends to
 * at most one rank and receives from at most one. */
SAR_KEY_API enum sar_key_result sar_key_request_pairs(struct sar_key *key, const char *phase, const int (*pairs)[2],
					  size_t count, unsigned milliseconds);

/* Ends a phase (NULL: all phases of the job), which frees its offset. Returns 0, or -1 if the agent did not confirm it;
 * then the offset stays taken until the lease ends. */
SAR_KEY_API int sar_key_done(const char *phase, unsigned milliseconds);

#ifdef __cplusplus
}
#endif
#endif
