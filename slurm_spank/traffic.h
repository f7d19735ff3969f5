/* What a user may say with --sar-traffic: the forms of sar_agent/jobs/traffic.txt. */
#ifndef SAR_TRAFFIC_H
#define SAR_TRAFFIC_H
#include <stdbool.h>
#include <stdio.h>

#define TRAFFIC_SIZE 64 /* of a hint, with its '\0' */

bool traffic_known(const char *text);
/* The table, for --sar-traffic=help. */
void traffic_help(FILE *to);
/* "none, ring, stencil2d:AxB, …" for the sentence that refuses another. */
const char *traffic_forms(void);

#endif
