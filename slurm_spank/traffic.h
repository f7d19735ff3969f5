/* The argument of --sar-traffic: a traffic pattern in one of the forms of sar_agent/jobs/traffic.txt. */
#pragma once
#include <stdbool.h>
#include <stdio.h>

#define TRAFFIC_SIZE 64 /* of a pattern, with its '\0' */

bool traffic_known(const char *text);
/* Prints the table of forms, for --sar-traffic=help. */
void traffic_help(FILE *to);
/* "none, ring, stencil2d:AxB, …", for the error message. */
const char *traffic_forms(void);
