/* Clocks: the monotonic one is what nobody sets. */
#pragma once
#include <stdint.h>
#include <time.h>

static inline int64_t clock_ms_of(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static inline int64_t clock_ms(void)
{
	return clock_ms_of(CLOCK_MONOTONIC);
}

static inline double clock_seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}
