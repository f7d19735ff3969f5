/* Whole numbers as text. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Parses digits; returns their end, or NULL if there are none, or they do not fit into 64 bits. */
static inline const char *number_parse(const char *text, uint64_t *value)
{
	const char *at = text;

	*value = 0;
	for (; *at >= '0' && *at <= '9'; at++)
		if (__builtin_mul_overflow(*value, 10, value) || __builtin_add_overflow(*value, (uint64_t)(*at - '0'), value))
			return NULL;
	return at > text ? at : NULL;
}

/* The same where nothing follows, and the number is within these bounds. */
static inline bool number_within(const char *text, uint64_t least, uint64_t most, uint64_t *value)
{
	const char *end = number_parse(text, value);

	return end && !*end && *value >= least && *value <= most;
}

/* Parses a number in units of 10^-decimals, whatever the locale, with at most so many digits after the point; returns the end, or
 * NULL as number_parse() does. */
static inline const char *number_decimal(const char *text, unsigned decimals, uint64_t *value)
{
	const char *at = *text == '.' ? text : number_parse(text, value);
	const bool whole = at != text, point = at && *at == '.';
	const char *first;

	if (!at)
		return NULL;
	first = at += point;
	*value = whole ? *value : 0;
	for (; decimals; decimals--)
		if (__builtin_mul_overflow(*value, 10, value) ||
		    (point && *at >= '0' && *at <= '9' && __builtin_add_overflow(*value, (uint64_t)(*at++ - '0'), value)))
			return NULL;
	return whole || at > first ? at : NULL;
}
