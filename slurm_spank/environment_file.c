/*
 * Files of NAME=VALUE. They are read only if the job's owner cannot have written them: they belong to root, to the
 * user of this process, or to the only user who may write to their folder (SlurmUser, on a shared folder).
 */
#include "environment_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "arguments.h"
#include "write_file.h"

#define FILE_SIZE (MOST_VARIABLES * sizeof(struct variable) + 1)

static bool path_of(char path[PATH_SIZE], const char *folder, uint32_t job)
{
	return *folder && snprintf(path, PATH_SIZE, "%s/%" PRIu32, folder, job) < PATH_SIZE;
}

/* Only this user may write to the folder; otherwise somebody could put a link or a file there first. */
static bool make_private_folder(const char *folder, struct reason *why)
{
	struct stat about;

	if (mkdir(folder, 0755) && errno != EEXIST)
		REFUSE("cannot make %.200s: %s", folder, strerror(errno));
	if (lstat(folder, &about))
		REFUSE("cannot read %.200s: %s", folder, strerror(errno));
	if (!S_ISDIR(about.st_mode) || about.st_uid != geteuid() || about.st_mode & (S_IWGRP | S_IWOTH))
		REFUSE("%.200s is not a folder to which only this user may write", folder);
	return true;
}

bool environment_store(const struct environment *e, const char *folder, uint32_t job, struct reason *why)
{
	char path[PATH_SIZE], text[FILE_SIZE];
	size_t length = 0;

	if (!path_of(path, folder, job))
		REFUSE("the folder's name is empty or too long: \"%.200s\"", folder);
	for (unsigned i = 0; i < e->count; i++)
		length += (size_t)snprintf(text + length, sizeof(text) - length, "%s=%s\n", e->variable[i].name,
					   e->variable[i].value);
	/* Nodes may share the folder: each writes a temporary file of its own, and the last rename wins. */
	return make_private_folder(folder, why) && write_file(path, text, length, why);
}

void environment_forget(const char *folder, uint32_t job, bool starts)
{
	char path[PATH_SIZE];
	struct stat about;

	if (!path_of(path, folder, job) || lstat(path, &about))
		return;
	if (!starts || about.st_mtime < time(NULL) - STALE_SECONDS)
		unlink(path);
}

static bool trusted(const char *path, const struct stat *file)
{
	char folder[PATH_SIZE];
	struct stat about;
	char *slash;

	if (!S_ISREG(file->st_mode) || file->st_mode & (S_IWGRP | S_IWOTH))
		return false;
	if (file->st_uid == 0 || file->st_uid == geteuid())
		return true;
	snprintf(folder, sizeof(folder), "%s", path);
	slash = strrchr(folder, '/');
	if (!slash)
		return false;
	*slash = '\0';
	return !stat(folder, &about) && about.st_uid == file->st_uid && !(about.st_mode & (S_IWGRP | S_IWOTH));
}

/* Returns the number of bytes, or -1. O_NONBLOCK, so that a FIFO of that name cannot delay the job. */
static ssize_t read_whole(const char *path, char *text, size_t room)
{
	const int file = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat about;
	ssize_t length = -1;

	if (file < 0)
		return -1;
	if (!fstat(file, &about) && trusted(path, &about))
		length = read(file, text, room);
	close(file);
	return length;
}

static bool read_file(struct environment *e, const char *path)
{
	char text[FILE_SIZE];
	const ssize_t length = read_whole(path, text, sizeof(text));
	const char *line = text, *const end = text + (length < 0 ? 0 : length);

	while (line < end) {
		const char *line_end = memchr(line, '\n', (size_t)(end - line));
		const char *equals;

		if (!line_end)
			line_end = end;
		equals = memchr(line, '=', (size_t)(line_end - line));
		if (equals)
			(void)environment_add(e, line, (size_t)(equals - line), equals + 1,
					      (size_t)(line_end - equals - 1));
		line = line_end + 1;
	}
	return length >= 0;
}

bool environment_load(struct environment *e, const char *folder, uint32_t job)
{
	char path[PATH_SIZE];

	return path_of(path, folder, job) && read_file(e, path);
}

bool environment_read_site_file(struct environment *e, const char *pattern, uint32_t job)
{
	const char *job_mark = strstr(pattern, "%j");
	char path[PATH_SIZE];
	int length;

	if (!*pattern)
		return false;
	length = job_mark ? snprintf(path, sizeof(path), "%.*s%" PRIu32 "%s", (int)(job_mark - pattern), pattern,
				     job, job_mark + 2)
			  : snprintf(path, sizeof(path), "%s", pattern);
	return length > 0 && (size_t)length < sizeof(path) && read_file(e, path);
}
