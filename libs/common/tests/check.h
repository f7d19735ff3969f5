/* A minimal test framework: CHECK counts and continues; the exit code of the program is the result. */
#pragma once
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int checks, failures;

#define CHECK(holds, ...)                                                                 \
	do {                                                                              \
		checks++;                                                                 \
		if (!(holds)) {                                                           \
			failures++;                                                       \
			fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__, #holds);       \
			fprintf(stderr, __VA_ARGS__);                                     \
			fputc('\n', stderr);                                              \
		}                                                                         \
	} while (0)

static inline int checked(const char *what)
{
	printf("%s: %d checks, %d failures\n", what, checks, failures);
	return failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
