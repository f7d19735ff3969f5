/* Files of NAME=VALUE are written and read, but not read where the job's owner could have written them. */
#include "../environment_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "../arguments.h"
#include "check.h"

static char folder[] = "/tmp/sar-spank-test-XXXXXX";

static void put(const char *name, const char *text, mode_t mode)
{
	char path[PATH_SIZE];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	unlink(path);
	file = fopen(path, "w");
	CHECK(file && fputs(text, file) >= 0 && !fclose(file) && !chmod(path, mode), "%s", path);
}

static void made_older(const char *in, const char *name, time_t seconds)
{
	const struct timespec then = {.tv_sec = time(NULL) - seconds};
	char path[2 * PATH_SIZE];

	snprintf(path, sizeof(path), "%s/%s", in, name);
	CHECK(!utimensat(AT_FDCWD, path, (const struct timespec[]){then, then}, 0), "%s", path);
}

static void stored(void)
{
	struct environment out = {.count = 0}, in = {.count = 0};
	struct reason why = {.text = ""};
	char state[PATH_SIZE], value[256], name[16];

	snprintf(state, sizeof(state), "%s/state", folder);
	CHECK(!environment_load(&in, state, 7), "nothing was kept");
	CHECK(environment_store(&out, state, 7, &why), "%s", why.text);
	CHECK(environment_load(&in, state, 7) && !in.count, "an answer without variables is an answer");
	memset(value, 'x', 255);
	for (int i = 0; i < MOST_VARIABLES; i++) {
		snprintf(name, sizeof(name), "V%d", i);
		CHECK(environment_add(&out, name, strlen(name), value, 255), "%s", name);
	}
	CHECK(!environment_add(&out, "ONE_MORE", 8, "1", 1) && environment_add(&out, "V0", 2, "1", 1), "full");
	CHECK(environment_store(&out, state, 7, &why), "%s", why.text);
	CHECK(environment_load(&in, state, 7) && in.count == MOST_VARIABLES, "%u", in.count);
	CHECK(!strcmp(in.variable[15].value, out.variable[15].value), "the same");
	environment_forget(state, 7, true);
	CHECK(environment_load(&in, state, 7), "another node of this job stored it a moment ago");
	made_older(state, "7", STALE_SECONDS + 2);
	environment_forget(state, 7, true);
	CHECK(!environment_load(&in, state, 7), "it was that of an earlier job");
	CHECK(environment_store(&out, state, 7, &why), "%s", why.text);
	environment_forget(state, 7, false);
	CHECK(!environment_load(&in, state, 7), "forgotten");
	CHECK(!environment_store(&out, "", 7, &why), "no folder");
	chmod(state, 0777);
	CHECK(!environment_store(&out, state, 7, &why) && strstr(why.text, "only this user may write"), "%s", why.text);
	rmdir(state);
}

static void site_file(void)
{
	struct environment e = {.count = 0};
	char pattern[PATH_SIZE];

	snprintf(pattern, sizeof(pattern), "%s/job-%%j.env", folder);
	put("job-12.env", "# ours\nUCX_IB_SL=3\n\nnot one\nBAD NAME=1\nX=a b\nUCX_IB_LID_PATH_BITS=1", 0644);
	CHECK(environment_read_site_file(&e, pattern, 12) && e.count == 2, "%u", e.count);
	CHECK(!strcmp(e.variable[1].name, "UCX_IB_LID_PATH_BITS") && !strcmp(e.variable[1].value, "1"), "last line");
	CHECK(!environment_read_site_file(&e, pattern, 13) && !environment_read_site_file(&e, "", 12), "no file");
	put("job-12.env", "A=1\n", 0666);
	CHECK(!environment_read_site_file(&e, pattern, 12), "anybody could have written it");
	put("job-12.env", "A=1\n", 0644);
	if (!geteuid()) { /* a user's file in root's folder */
		char path[PATH_SIZE];

		snprintf(path, sizeof(path), "%s/job-12.env", folder);
		CHECK(!chown(path, 65534, 65534) && !environment_read_site_file(&e, pattern, 12), "a user's");
		CHECK(!chown(folder, 65534, 65534) && environment_read_site_file(&e, pattern, 12), "in a folder of his own");
		CHECK(!chown(folder, 0, 0), "back");
	}
}

int main(void)
{
	char path[PATH_SIZE];

	CHECK(mkdtemp(folder) != NULL, "%s", folder);
	stored();
	site_file();
	snprintf(path, sizeof(path), "%s/job-12.env", folder);
	unlink(path);
	CHECK(!rmdir(folder), "something was left in %s", folder);
	return checked("environment files");
}
