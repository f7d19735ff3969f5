/* The file of the socket: its permissions, and what happens if somebody replaces it. */
#include "../listener.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"

static char folder[] = "/tmp/sar-test-XXXXXX", path[64], victim[64];

static void it_has_its_rights_under_any_umask(void)
{
	const mode_t masks[] = {0, 022, 077, 0777};

	for (size_t m = 0; m < sizeof(masks) / sizeof(*masks); m++) {
		struct reason why = {.text = ""};
		struct stat info;
		ino_t inode = 0;
		int listener;

		umask(masks[m]);
		listener = listener_open(path, getegid(), &inode, &why);
		CHECK(listener >= 0, "%s", why.text);
		CHECK(!lstat(path, &info) && info.st_ino == inode, "the file's inode");
		CHECK((info.st_mode & 07777) == 0660, "mode %o", (unsigned)info.st_mode);
		CHECK(umask(022) == masks[m], "the umask is as before");
		CHECK(listener_open(path, -1, &inode, &why) < 0 && strstr(why.text, "already listens"),
		      "%s", why.text);
		close(listener); /* what stays behind is removed by the next one */
	}
	CHECK(!unlink(path), "it is there");
}

/* Between bind() and the change of group, the owner of the folder replaces the file. */
static void nothing_else_changes_hands(void)
{
	const gid_t other = geteuid() ? getegid() : 12345;
	struct stat before, after;
	ino_t inode;
	const int file = open(victim, O_WRONLY | O_CREAT | O_EXCL, 0600);

	CHECK(file >= 0 && !close(file) && !stat(victim, &before), "a file of root's");
	CHECK(!symlink(victim, path), "a link to it");
	CHECK(!listener_give(path, other, &inode) && errno == EEXIST, "%s", strerror(errno));
	CHECK(!unlink(path) && !link(victim, path), "another name of it");
	CHECK(!listener_give(path, other, &inode) && errno == EEXIST, "%s", strerror(errno));
	CHECK(!stat(victim, &after), "it is there");
	CHECK(after.st_gid == before.st_gid && after.st_mode == before.st_mode, "and as before");
	unlink(path);
	CHECK(!listener_give(path, other, &inode) && errno == ENOENT, "%s", strerror(errno));
	unlink(victim);
}

static void a_socket_changes_hands(void)
{
	struct reason why = {.text = ""};
	struct stat info;
	ino_t inode;
	int listener;

	if (geteuid()) /* only root has a second group for sure */
		return;
	listener = listener_open(path, 12345, &inode, &why);
	CHECK(listener >= 0, "%s", why.text);
	CHECK(!stat(path, &info) && info.st_gid == 12345 && (info.st_mode & 0777) == 0660, "group");
	close(listener);
	unlink(path);
	CHECK(!mkdir(path, 0700), "a folder");
	CHECK(listener_open(path, -1, &inode, &why) < 0 && strstr(why.text, "is not a socket"), "%s",
	      why.text);
	rmdir(path);
}

int main(void)
{
	CHECK(mkdtemp(folder), "mkdtemp");
	snprintf(path, sizeof(path), "%s/bridge.sock", folder);
	snprintf(victim, sizeof(victim), "%s/shadow", folder);
	it_has_its_rights_under_any_umask();
	nothing_else_changes_hands();
	a_socket_changes_hands();
	CHECK(!rmdir(folder), "nothing is left");
	return checked("listener");
}
