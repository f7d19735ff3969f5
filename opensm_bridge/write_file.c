/* Writes a temporary file in the same folder, then renames it; see write_file.h. */
#include "write_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool write_all(int file, const uint8_t *bytes, size_t size)
{
	for (size_t done = 0; done < size;) {
		const ssize_t now = write(file, bytes + done, size - done);

		if (now < 0 && errno == EINTR)
			continue;
		if (now <= 0)
			return false;
		done += (size_t)now;
	}
	return true;
}

bool write_file(const char *path, const void *bytes, size_t size, struct reason *why)
{
	char temporary[PATH_MAX];
	int file, error;
	bool good;

	if ((size_t)snprintf(temporary, sizeof(temporary), "%s.XXXXXX", path) >= sizeof(temporary))
		REFUSE("the path %.300s is too long", path);
	file = mkostemp(temporary, O_CLOEXEC);
	if (file < 0)
		REFUSE("cannot write %.300s: %s", path, strerror(errno));
	good = write_all(file, bytes, size) && !fchmod(file, 0644);
	error = errno;
	if (close(file) && good) {
		good = false;
		error = errno;
	}
	if (good && rename(temporary, path)) {
		good = false;
		error = errno;
	}
	if (!good) {
		unlink(temporary);
		REASON(why, "cannot write %.300s: %s", path, strerror(error));
	}
	return good;
}
