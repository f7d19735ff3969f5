/*
 * Routing keys for an application, at the boundaries of its phases (RODRequest and RODDone of
 * routing-keys-2017). One process of the job speaks and tells the others. Link with -lsar_key -ldl.
 *
 * Whatever is missing (the agent, munge, a free LID offset), the answer is offset 0: the job goes on as
 * it would have. Where the agent listens says SAR_AGENT (a path or HOST:PORT; the default is
 * /run/sar-agent/events.sock), and SAR_MUNGE_SOCKET where munged does, if not in its usual place. Calls
 * may come from any thread. Nothing is forked; but munge's library alone decides how long it waits for
 * a munged that hangs.
 */
#ifndef SAR_KEY_H
#define SAR_KEY_H
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SAR_KEY_API __attribute__((visibility("default")))

enum sar_key_result {
	SAR_KEY_WRONG = -1,   /* the request makes no sense: `sentence` says why */
	SAR_KEY_NONE = 0,     /* no key: send with offset 0; `sentence` says why */
	SAR_KEY_IN_FORCE = 1, /* the routes are there: send with `offset` */
};

struct sar_key {
	unsigned offset;    /* of the LIDs to send with: UCX_IB_LID_PATH_BITS */
	unsigned own;	    /* most flows of the phase over one link */
	unsigned total;	    /* and with those of all other keys */
	char sentence[200]; /* "" where there is a key */
};

/* Routes for a phase with a pattern by name ("ring", "stencil3d:4x4x4"), in `milliseconds` at most. Asked
 * again, it lengthens the lease. The ranks are those of this process's step in Slurm. */
SAR_KEY_API enum sar_key_result sar_key_request(struct sar_key *key, const char *phase, const char *pattern,
				    unsigned milliseconds);

/* The same for `count` pairs of ranks (from, to), each rank once in either place where nobody is to be
 * in another's way. */
SAR_KEY_API enum sar_key_result sar_key_request_pairs(struct sar_key *key, const char *phase, const int (*pairs)[2],
					  size_t count, unsigned milliseconds);

/* The phase is over and its offset free; NULL: every phase of the job. 0, or -1 where nobody heard it:
 * then the lease ends it. */
SAR_KEY_API int sar_key_done(const char *phase, unsigned milliseconds);

#ifdef __cplusplus
}
#endif
#endif
