/* Not fsynced: a message lost when a machine dies is one that the queue tells of anyway. */
#include "spool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "arguments.h"

bool spool_write(const char *folder, const char *id, const char *payload, size_t length, struct reason *why)
{
	const struct iovec line[] = {{(void *)(unsigned long)payload, length}, {(char[]){'\n'}, 1}};
	char hidden[PATH_SIZE + 32], path[PATH_SIZE + 32];
	bool good;
	int file;

	snprintf(hidden, sizeof(hidden), "%s/.%s.tmp", folder, id);
	snprintf(path, sizeof(path), "%s/%s.json", folder, id);
	file = open(hidden, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (file < 0) {
		REASON(why, "cannot write %.200s: %s", hidden, strerror(errno));
		return false;
	}
	good = writev(file, line, 2) == (ssize_t)length + 1;
	good = !close(file) && good && !rename(hidden, path);
	if (!good) {
		REASON(why, "cannot write %.200s: %s", path, strerror(errno));
		unlink(hidden);
	}
	return good;
}
