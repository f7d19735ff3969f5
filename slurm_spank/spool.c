/* Without fsync(): if a message is lost because the machine dies, the agent still learns of the job from the queue. */
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
	char temporary[PATH_SIZE + 32], path[PATH_SIZE + 32];
	bool good;
	int file;

	snprintf(temporary, sizeof(temporary), "%s/.%s.tmp", folder, id);
	snprintf(path, sizeof(path), "%s/%s.json", folder, id);
	file = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (file < 0) {
		REASON(why, "cannot write %.200s: %s", temporary, strerror(errno));
		return false;
	}
	good = writev(file, line, 2) == (ssize_t)length + 1;
	good = !close(file) && good && !rename(temporary, path);
	if (!good) {
		REASON(why, "cannot write %.200s: %s", path, strerror(errno));
		unlink(temporary);
	}
	return good;
}
