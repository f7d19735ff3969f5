/* A connection to the agent: one line out, one answer back, each before a deadline. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "clock.h" /* deadlines are clock_ms() */
#include "reason.h"

/* `address` is HOST:PORT, [IPV6]:PORT, or the path of a Unix socket. Returns a descriptor, or -1 and `why`. */
int connection_open(const char *address, int64_t deadline, struct reason *why);
/* The uid of the process that listens at the other end of a Unix socket, as the kernel reports it; -1 for TCP. */
int64_t connection_peer(int connection);
bool connection_send(int connection, const char *bytes, size_t length, int64_t deadline, struct reason *why);
/* Reads an answer up to the empty line that ends it, as a string without its last line end. */
bool connection_read_answer(int connection, char *answer, size_t room, int64_t deadline, struct reason *why);
