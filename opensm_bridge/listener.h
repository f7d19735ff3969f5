/* The plugin's Unix socket as a file: made with its rights, given to its group, no way round. */
#ifndef SAR_LISTENER_H
#define SAR_LISTENER_H
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "reason.h"

/* A listening socket at `path`, mode 0660; `group` -1: this process's. `inode` gets the file's. */
int listener_open(const char *path, int64_t group, ino_t *inode, struct reason *why);
/* Give a socket of ours to `group`; false, and errno, for anything else that stands there. */
bool listener_give(const char *path, int64_t group, ino_t *inode);

#endif
