/* The file of the plugin's Unix socket: created safely, with its permissions and its group. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "reason.h"

/* Returns a listening socket at `path` with mode 0660, or -1 and `why`. `group` -1: the group of this process. Sets `inode`
 * to that of the file. */
int listener_open(const char *path, int64_t group, ino_t *inode, struct reason *why);
/* Changes the group of a socket that belongs to this user; false, and errno, for any other file at `path`. */
bool listener_give(const char *path, int64_t group, ino_t *inode);
