/* Writes a temporary file in the same folder, then renames it; see write_file.h. */
#include "write_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool write_file(const char *path, const void *bytes, size_t size, struct reason *why)
{
	char temporary[PATH_MAX];
	int descriptor;
	FILE *file;
	bool good;

	if ((size_t)snprintf(temporary, sizeof(temporary), "%s.XXXXXX", path) >= sizeof(temporary))
		REFUSE("the path %.300s is too long", path);
	descriptor = mkostemp(temporary, O_CLOEXEC);
	file = descriptor < 0 ? NULL : fdopen(descriptor, "w");
	if (!file) {
		REASON(why, "cannot write %.300s: %s", path, strerror(errno));
		if (descriptor >= 0) {
			close(descriptor);
			unlink(temporary);
		}
		return false;
	}
	good = fwrite(bytes, 1, size, file) == size && !fflush(file) && !fchmod(descriptor, 0644) && !rename(temporary, path);
	if (!good) {
		REASON(why, "cannot write %.300s: %s", path, strerror(errno));
		unlink(temporary);
	}
	fclose(file); /* nothing is left to be written */
	return good;
}
