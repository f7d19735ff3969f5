/*
 * OpenSM runs as root, and its folder may belong to the agent's user, who can replace the socket by a link at any moment.
 * So nothing is changed by name: the socket has its permissions from the moment it exists (bind() takes them from the
 * socket and the umask), and its group is changed through a descriptor of the same file that was checked.
 */
#include "listener.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* Removes a socket that an earlier OpenSM left behind, but not one on which a process listens. */
static bool remove_stale(const struct sockaddr_un *address, struct reason *why)
{
	struct stat info;
	int probe, error;

	if (lstat(address->sun_path, &info))
		return true;
	if (!S_ISSOCK(info.st_mode))
		REFUSE("%s exists and is not a socket", address->sun_path);
	probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	error = probe < 0 || !connect(probe, (const void *)address, sizeof(*address)) ? 0 : errno;
	if (probe >= 0)
		close(probe);
	if (error == ECONNREFUSED)
		return !unlink(address->sun_path);
	REASON(why, "another OpenSM already listens on %s; give each OpenSM a dir of its own", address->sun_path);
	return false;
}

bool listener_give(const char *path, int64_t group, ino_t *inode)
{
	const int file = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct stat info;
	bool good = file >= 0 && !fstat(file, &info);

	if (good && (!S_ISSOCK(info.st_mode) || info.st_uid != geteuid() || info.st_nlink != 1)) {
		errno = EEXIST; /* somebody replaced the socket */
		good = false;
	}
	good = good && (group < 0 || !fchownat(file, "", (uid_t)-1, (gid_t)group, AT_EMPTY_PATH));
	if (good)
		*inode = info.st_ino;
	if (file >= 0) {
		const int error = errno;

		close(file);
		errno = error;
	}
	return good;
}

static bool bind_at(int listener, const struct sockaddr_un *address)
{
	const mode_t before = umask(0117);
	const bool good = !fchmod(listener, 0660) &&
			  !bind(listener, (const void *)address, sizeof(*address));
	const int error = errno;

	umask(before);
	errno = error;
	return good;
}

int listener_open(const char *path, int64_t group, ino_t *inode, struct reason *why)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int listener;

	if ((size_t)snprintf(address.sun_path, sizeof(address.sun_path), "%s", path) >=
	    sizeof(address.sun_path))
		return REASON(why, "the path %.200s is too long for a socket", path), -1;
	if (!remove_stale(&address, why))
		return -1;
	listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (listener >= 0 && bind_at(listener, &address) && listener_give(path, group, inode) &&
	    !listen(listener, 16))
		return listener;
	REASON(why, "cannot listen on %s: %s", path, strerror(errno));
	if (listener >= 0)
		close(listener);
	return -1;
}
