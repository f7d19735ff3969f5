/* Notices from the SA: InformInfo for traps 68 and 69, and the Reports that follow. Nothing here blocks. */
#pragma once
#include <stdbool.h>

#include "notice.h"
#include "reason.h"

struct sa;

/* `ca` NULL: the first HCA; `port` 0: its first active port; `simulated`: under umad2sim. Returns NULL and `why` on failure. */
struct sa *sa_open(const char *ca, int port, bool simulated, struct reason *why);
/* The descriptor to wait for; -1 if the caller must poll sa_notice(), because umad2sim's descriptors are not the kernel's. */
int sa_fd(const struct sa *sa);
/* Sends both subscriptions, or cancels them. Sending them again does no harm, and is necessary because an OpenSM that was
 * restarted has lost them. */
bool sa_inform(struct sa *sa, bool subscribe, struct reason *why);
/* Whether the SA has answered both since the last sa_inform(). */
bool sa_informed(const struct sa *sa);
/* Takes the next notice of ours and answers its Report; false if there is none now. */
bool sa_notice(struct sa *sa, struct notice *notice);
void sa_close(struct sa *sa);
