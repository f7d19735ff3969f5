/*
 * libmunge is opened with dlopen() when it is needed, never linked: on a node without it the SPANK plugin still
 * loads, and where Slurm has libmunge in the process already, the plugin uses that copy.
 */
#include "credential.h"

#include <dlfcn.h>
#include <munge.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/types.h>

#include "number.h"

static struct {
	__typeof__(&munge_encode) encode;
	__typeof__(&munge_ctx_create) create;
	__typeof__(&munge_ctx_destroy) destroy;
	__typeof__(&munge_ctx_set) set;
	__typeof__(&munge_strerror) error;
} munge;

static bool open_library(struct reason *why)
{
	void *library = dlopen("libmunge.so.2", RTLD_NOW | RTLD_LOCAL);

	if (!library)
		REFUSE("munge is not installed");
	/* The conversion that POSIX prescribes from an object pointer to a function pointer. */
	*(void **)&munge.encode = dlsym(library, "munge_encode");
	*(void **)&munge.create = dlsym(library, "munge_ctx_create");
	*(void **)&munge.destroy = dlsym(library, "munge_ctx_destroy");
	*(void **)&munge.set = dlsym(library, "munge_ctx_set");
	*(void **)&munge.error = dlsym(library, "munge_strerror");
	if (munge.encode && munge.create && munge.destroy && munge.set && munge.error)
		return true;
	REASON(why, "libmunge.so.2 lacks a function of munge");
	return false;
}

int64_t credential_reader(const char *name)
{
	struct passwd entry, *user = NULL;
	uint64_t number;
	char text[4096];

	if (!*name)
		return READER_ANY;
	if (number_within(name, 0, UINT32_MAX - 1, &number))
		return (int64_t)number;
	if (getpwnam_r(name, &entry, text, sizeof(text), &user) || !user)
		return READER_ANY;
	return (int64_t)entry.pw_uid;
}

char *credential_make(const char *socket, const void *payload, size_t length, int64_t reader, struct reason *why)
{
	char *credential = NULL;
	munge_ctx_t context;
	munge_err_t error;

	if (!open_library(why))
		return NULL;
	context = munge.create();
	if (!context)
		return REASON(why, "no memory"), NULL;
	error = *socket ? munge.set(context, MUNGE_OPT_SOCKET, socket) : EMUNGE_SUCCESS;
	if (error == EMUNGE_SUCCESS && reader != READER_ANY)
		error = munge.set(context, MUNGE_OPT_UID_RESTRICTION, (uid_t)reader);
	if (error == EMUNGE_SUCCESS)
		error = munge.encode(&credential, context, payload, (int)length);
	if (error != EMUNGE_SUCCESS) {
		REASON(why, "munge: %s", munge.error(error));
		credential = NULL;
	}
	munge.destroy(context);
	return credential;
}
