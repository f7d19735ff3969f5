/* A file of environment variables: any bytes. What was read can be stored and is read back as the same. */
#include "../environment_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char folder[64];

static void make_folder(void)
{
	static const char *const in[] = {"/dev/shm", "/tmp"}; /* best not on a disk: each input is written */

	for (unsigned i = 0; i < 2; i++) {
		snprintf(folder, sizeof(folder), "%s/sar-fuzz-XXXXXX", in[i]);
		if (mkdtemp(folder))
			return;
	}
	perror(folder);
	exit(2);
}

static void remove_folder(void)
{
	char path[80];

	snprintf(path, sizeof(path), "%s/1", folder);
	unlink(path);
	rmdir(folder);
}

static void put(const uint8_t *data, size_t size)
{
	char path[80];
	int file;

	snprintf(path, sizeof(path), "%s/1", folder);
	file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	if (file < 0 || write(file, data, size) != (ssize_t)size || close(file)) {
		perror(path);
		exit(2);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct environment read = {.count = 0}, again = {.count = 0};
	struct reason why;

	if (!*folder) {
		make_folder();
		atexit(remove_folder);
	}
	put(data, size);
	if (!environment_load(&read, folder, 1) || !environment_store(&read, folder, 1, &why) ||
	    !environment_load(&again, folder, 1) || again.count != read.count)
		abort();
	for (unsigned i = 0; i < read.count; i++) {
		const struct variable *v = &read.variable[i];

		if (strcmp(v->name, again.variable[i].name) || strcmp(v->value, again.variable[i].value))
			abort();
		(void)environment_harmless(v->name, v->value);
		(void)environment_allows(v->value, v->name);
	}
	return 0;
}
