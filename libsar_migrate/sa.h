/* Notices by the SA: InformInfo for traps 68 and 69, and the Reports that follow. Nothing here blocks. */
#ifndef SAR_SA_H
#define SAR_SA_H
#include <stdbool.h>

#include "notice.h"
#include "reason.h"

struct sa;

/* NULL and why. `ca` NULL: the first; `port` 0: the first that is active. `simulated`: under umad2sim. */
struct sa *sa_open(const char *ca, int port, bool simulated, struct reason *why);
/* To be waited for, -1 if it must be asked now and then (umad2sim's files are not the kernel's). */
int sa_fd(const struct sa *sa);
/* Sends both subscriptions, or takes them back; the SA holds each once however often it is sent. An OpenSM that
 * was restarted has forgotten them. */
bool sa_inform(struct sa *sa, bool subscribe, struct reason *why);
/* Both have been answered since the last sa_inform. */
bool sa_informed(const struct sa *sa);
/* The next notice of ours, its Report answered; false if there is none now. */
bool sa_notice(struct sa *sa, struct notice *notice);
void sa_close(struct sa *sa);

#endif
