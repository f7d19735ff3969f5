/*
 * The thread that talks to the agent, one exchange at a time. It exists because munge and the name service know no
 * deadline: while waiting for them, the library's step could not leave offset 0 when the lease ends. The SPANK plugin
 * uses a child process instead, but fork() is unsafe in a process with memory registered for RDMA.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "answer.h"
#include "message.h"
#include "reason.h"

struct agent_thread;

/* `munge_socket` may be NULL. Returns NULL and `why` if no thread can be started. */
struct agent_thread *agent_thread_start(const char *address, const char *munge_socket, struct reason *why);
/* A descriptor that is readable when agent_thread_result() has a result. */
int agent_thread_fd(const struct agent_thread *t);
/* Starts an exchange; not allowed while one is under way. It ends within `patience` ms, unless munge or the name service
 * takes longer. */
void agent_thread_ask(struct agent_thread *t, const char *payload, size_t length, int64_t patience);
/* True if an exchange has ended since the last call. `why` is "" if `answer` is set. */
bool agent_thread_result(struct agent_thread *t, struct answer *answer, struct reason *why);
/* Ends the thread. If it hangs in munge or the name service, it is detached, and its memory is not freed. */
void agent_thread_stop(struct agent_thread *t);
