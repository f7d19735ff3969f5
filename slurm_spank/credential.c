/*
 * libmunge is opened when it is needed and never linked: where a node has none, the plugin still
 * loads, and Slurm's own copy is used where Slurm has one in the process.
 */
#include "credential.h"

#include <dlfcn.h>
#include <munge.h>
#include <stdbool.h>

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

	if (!library) {
		REASON(why, "munge is not installed");
		return false;
	}
	/* As POSIX has it: a pointer to an object becomes one to a function. */
	*(void **)&munge.encode = dlsym(library, "munge_encode");
	*(void **)&munge.create = dlsym(library, "munge_ctx_create");
	*(void **)&munge.destroy = dlsym(library, "munge_ctx_destroy");
	*(void **)&munge.set = dlsym(library, "munge_ctx_set");
	*(void **)&munge.error = dlsym(library, "munge_strerror");
	if (munge.encode && munge.create && munge.destroy && munge.set && munge.error)
		return true;
	REASON(why, "libmunge.so.2 is not munge's");
	return false;
}

char *credential_make(const char *socket, const void *payload, size_t length, struct reason *why)
{
	char *credential = NULL;
	munge_ctx_t context;
	munge_err_t error;

	if (!open_library(why))
		return NULL;
	context = munge.create();
	if (!context) {
		REASON(why, "no memory");
		return NULL;
	}
	error = *socket ? munge.set(context, MUNGE_OPT_SOCKET, socket) : EMUNGE_SUCCESS;
	if (error == EMUNGE_SUCCESS)
		error = munge.encode(&credential, context, payload, (int)length);
	if (error != EMUNGE_SUCCESS) {
		REASON(why, "munge: %s", munge.error(error));
		credential = NULL;
	}
	munge.destroy(context);
	return credential;
}
