/*
 * Names and values go from outside into users' processes, so both are held to a short alphabet, names
 * also to the site's list. Files are read only if the job's owner cannot have written them: they
 * belong to root, to us, or to the one who alone may write to their folder (SlurmUser, on a shared one).
 */
#include "environment.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "arguments.h"

#define FILE_SIZE (MOST_VARIABLES * sizeof(struct variable) + 1)
#define REFUSE(...) return REASON(why, __VA_ARGS__), false

static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_";
static const char others[] = "0123456789.,:=+-/@%"; /* for values; a name has digits only */

static bool is_of(char c, const char *alphabet)
{
	return c && strchr(alphabet, c);
}

static bool fit(const char *name, size_t name_length, const char *value, size_t value_length)
{
	if (!name_length || name_length >= sizeof(((struct variable *)0)->name) || !is_of(*name, letters) ||
	    value_length >= sizeof(((struct variable *)0)->value))
		return false;
	for (size_t i = 0; i < name_length; i++)
		if (!is_of(name[i], letters) && !(name[i] >= '0' && name[i] <= '9'))
			return false;
	for (size_t i = 0; i < value_length; i++)
		if (!is_of(value[i], letters) && !is_of(value[i], others))
			return false;
	return true;
}

bool environment_add(struct environment *e, const char *name, size_t name_length, const char *value,
		     size_t value_length)
{
	unsigned i;

	if (!fit(name, name_length, value, value_length))
		return false;
	for (i = 0; i < e->count; i++)
		if (strlen(e->variable[i].name) == name_length && !memcmp(e->variable[i].name, name, name_length))
			break;
	if (i == MOST_VARIABLES)
		return false;
	memcpy(e->variable[i].name, name, name_length);
	e->variable[i].name[name_length] = '\0';
	memcpy(e->variable[i].value, value, value_length);
	e->variable[i].value[value_length] = '\0';
	if (i == e->count)
		e->count++;
	return true;
}

/* Numbers, ranges and lists of them (0-3,8) that are not above `most`. */
static bool small(const char *value, unsigned long most)
{
	char *end;

	do {
		if (*value < '0' || *value > '9' || strtoul(value, &end, 10) > most)
			return false;
		value = end + 1;
	} while (*end == '-' || *end == ',');
	return !*end;
}

bool environment_harmless(const char *name, const char *value)
{
	static const struct {
		const char *name;
		unsigned long most;
	} known[] = {
		{"UCX_IB_LID_PATH_BITS", 127}, {"UCX_IB_NUM_PATHS", 128}, {"UCX_IB_SL", 15}, {"NCCL_IB_SL", 15},
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (!strcmp(known[i].name, name))
			return small(value, known[i].most);
	return true;
}

bool environment_allows(const char *allow, const char *name)
{
	const size_t length = strlen(name);

	for (const char *word = allow; *word; word += strcspn(word, ":"), word += *word == ':')
		if (strcspn(word, ":") == length && !memcmp(word, name, length))
			return true;
	return false;
}

static bool path_of(char path[PATH_SIZE], const char *folder, const char *before, uint32_t job)
{
	return *folder && snprintf(path, PATH_SIZE, "%s/%s%" PRIu32, folder, before, job) < PATH_SIZE;
}

/* Ours alone: else somebody could wait there with a link or a file of his own. */
static bool own_folder(const char *folder, struct reason *why)
{
	struct stat about;

	if (mkdir(folder, 0755) && errno != EEXIST)
		REFUSE("cannot make %.200s: %s", folder, strerror(errno));
	if (lstat(folder, &about))
		REFUSE("cannot read %.200s: %s", folder, strerror(errno));
	if (!S_ISDIR(about.st_mode) || about.st_uid != geteuid() || about.st_mode & (S_IWGRP | S_IWOTH))
		REFUSE("%.200s is not a folder in which only we may write", folder);
	return true;
}

bool environment_keep(const struct environment *e, const char *folder, uint32_t job, struct reason *why)
{
	char path[PATH_SIZE], before[PATH_SIZE], hidden[32], text[FILE_SIZE];
	size_t length = 0;
	bool good;
	int file;

	/* Several nodes may share the folder: each writes a file of its own, and the last one stays. */
	snprintf(hidden, sizeof(hidden), ".%ld.", (long)getpid());
	if (!path_of(path, folder, "", job) || !path_of(before, folder, hidden, job))
		REFUSE("%.200s is too long for a folder's name", folder);
	if (!own_folder(folder, why))
		return false;
	for (unsigned i = 0; i < e->count; i++)
		length += (size_t)snprintf(text + length, sizeof(text) - length, "%s=%s\n", e->variable[i].name,
					   e->variable[i].value);
	file = open(before, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (file < 0)
		REFUSE("cannot write %.200s: %s", before, strerror(errno));
	good = write(file, text, length) == (ssize_t)length && !fchmod(file, 0644);
	good = !close(file) && good && !rename(before, path);
	if (!good) {
		REASON(why, "cannot write %.200s: %s", path, strerror(errno));
		unlink(before);
	}
	return good;
}

void environment_forget(const char *folder, uint32_t job)
{
	char path[PATH_SIZE];

	if (path_of(path, folder, "", job))
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

/* How many bytes, or -1. O_NONBLOCK, lest a FIFO of that name holds the job's start. */
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
		const char *stop = memchr(line, '\n', (size_t)(end - line));
		const char *is;

		if (!stop)
			stop = end;
		is = memchr(line, '=', (size_t)(stop - line));
		if (is)
			(void)environment_add(e, line, (size_t)(is - line), is + 1, (size_t)(stop - is - 1));
		line = stop + 1;
	}
	return length >= 0;
}

bool environment_kept(struct environment *e, const char *folder, uint32_t job)
{
	char path[PATH_SIZE];

	return path_of(path, folder, "", job) && read_file(e, path);
}

bool environment_read(struct environment *e, const char *pattern, uint32_t job)
{
	const char *place = strstr(pattern, "%j");
	char path[PATH_SIZE];
	int length;

	if (!*pattern)
		return false;
	length = place ? snprintf(path, sizeof(path), "%.*s%" PRIu32 "%s", (int)(place - pattern), pattern, job,
				  place + 2)
		       : snprintf(path, sizeof(path), "%s", pattern);
	return length > 0 && (size_t)length < sizeof(path) && read_file(e, path);
}
