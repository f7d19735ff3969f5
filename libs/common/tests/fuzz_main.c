/* fuzz_main FILE|FOLDER…: feeds files to a fuzz target, for where libFuzzer is not. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define MOST (1 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned files;

static void feed(const char *path)
{
	FILE *file = fopen(path, "rb");
	uint8_t *read = malloc(MOST), *data;
	size_t size;

	if (!file || !read) {
		perror(path);
		exit(2);
	}
	size = fread(read, 1, MOST, file);
	fclose(file);
	data = realloc(read, size ? size : 1); /* of the exact size, so that ASan reports a read past its end */
	LLVMFuzzerTestOneInput(data, size);
	free(data);
	files++;
}

int main(int count, char *arguments[])
{
	for (int i = 1; i < count; i++) {
		DIR *folder = opendir(arguments[i]);
		char path[4096];

		if (!folder)
			feed(arguments[i]);
		for (struct dirent *entry; folder && (entry = readdir(folder));)
			if (*entry->d_name != '.' &&
			    snprintf(path, sizeof(path), "%s/%s", arguments[i], entry->d_name) < (int)sizeof(path))
				feed(path);
		if (folder)
			closedir(folder);
	}
	printf("%s: %u inputs\n", arguments[0], files);
	return files ? 0 : 2;
}
