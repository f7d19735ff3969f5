/* One line there, one line back, before a deadline. */
#ifndef SAR_STREAM_H
#define SAR_STREAM_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "reason.h"

/* Milliseconds that only grow. */
int64_t clock_ms(void);

/* `address` is HOST:PORT, [IPV6]:PORT, or the path of a Unix socket. -1 and why if it cannot. */
int stream_open(const char *address, int64_t deadline, struct reason *why);
/* The uid of who listens at the other end of a Unix socket, as the kernel has it; -1 for another socket. */
int64_t stream_peer(int stream);
bool stream_send(int stream, const char *bytes, size_t length, int64_t deadline, struct reason *why);
/* A line without its '\n', as a string. */
bool stream_line(int stream, char *line, size_t room, int64_t deadline, struct reason *why);

#endif
