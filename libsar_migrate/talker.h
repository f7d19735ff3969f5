/*
 * One exchange with the agent's door at a time, in a thread of its own: munge and the name service know no
 * deadline, and who waits for them cannot leave offset 0 when its lease ends. slurm_spank's way, a child, is
 * not for processes with registered memory.
 */
#ifndef SAR_TALKER_H
#define SAR_TALKER_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "answer.h"
#include "message.h"
#include "reason.h"

struct talker;

/* `munge_socket` may be NULL. NULL and why if there is no thread to be had. */
struct talker *talker_start(const char *address, const char *munge_socket, struct reason *why);
/* Readable when talker_take has something. */
int talker_fd(const struct talker *t);
bool talker_busy(struct talker *t);
/* Not while it is busy. It takes `patience` ms at most, munge and the name service aside. */
void talker_ask(struct talker *t, const char *payload, size_t length, int64_t patience);
/* True if an exchange is over since; `why` is "" if `answer` is one. */
bool talker_take(struct talker *t, struct answer *answer, struct reason *why);
/* One that hangs in somebody else's library is left to hang, and its memory to it. */
void talker_stop(struct talker *t);

#endif
