/*
 * Takes Slurm's place, so that the plugin's hooks run under ASan: the slurmstepd of a prolog has an environment without
 * LD_PRELOAD, so ASan cannot be loaded into it.
 * spank_host local|remote|prolog|epilog TRAFFIC [ARGUMENT ...]; TRAFFIC "-" means that the option is not given.
 */
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include <slurm/spank.h>

static const char *context, *traffic;
static struct spank_option *registered;

static void print_line(const char *format, va_list arguments)
{
	vfprintf(stderr, format, arguments);
	fputc('\n', stderr);
}

void slurm_info(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	print_line(format, arguments);
	va_end(arguments);
}

void slurm_error(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	print_line(format, arguments);
	va_end(arguments);
}

spank_context_t spank_context(void)
{
	return !strcmp(context, "local") ? S_CTX_LOCAL : !strcmp(context, "remote") ? S_CTX_REMOTE : S_CTX_JOB_SCRIPT;
}

spank_err_t spank_option_register(spank_t spank, struct spank_option *option)
{
	(void)spank;
	registered = option;
	return ESPANK_SUCCESS;
}

spank_err_t spank_option_getopt(spank_t spank, struct spank_option *option, char **text)
{
	(void)spank;
	if (!option->has_arg || !strcmp(traffic, "-"))
		return ESPANK_ERROR;
	*text = (char *)(unsigned long)traffic;
	return ESPANK_SUCCESS;
}

spank_err_t spank_get_item(spank_t spank, spank_item_t item, ...)
{
	va_list arguments;

	(void)spank;
	if (item == S_JOB_ID && getenv("NO_JOB"))
		return ESPANK_NOT_AVAIL;
	va_start(arguments, item);
	if (item == S_JOB_ID)
		*va_arg(arguments, uint32_t *) = 7;
	else if (item == S_JOB_UID)
		*va_arg(arguments, uid_t *) = 1000;
	else
		abort();
	va_end(arguments);
	return ESPANK_SUCCESS;
}

spank_err_t spank_getenv(spank_t spank, const char *name, char *text, int room)
{
	const char *value = getenv(name);

	(void)spank;
	if (!value)
		return ESPANK_ENV_NOEXIST;
	return snprintf(text, (size_t)room, "%s", value) < room ? ESPANK_SUCCESS : ESPANK_NOSPACE;
}

spank_err_t spank_setenv(spank_t spank, const char *name, const char *value, int overwrite)
{
	(void)spank;
	if (overwrite)
		abort(); /* what the user has set takes precedence */
	printf("tasks: %s=%s\n", name, value);
	return ESPANK_SUCCESS;
}

spank_err_t spank_job_control_setenv(spank_t spank, const char *name, const char *value, int overwrite)
{
	(void)spank;
	(void)overwrite;
	printf("hooks: SPANK_%s=%s\n", name, value);
	return ESPANK_SUCCESS;
}

int main(int argc, char **argv)
{
	spank_t spank = NULL;

	if (argc < 3)
		return 2;
	context = argv[1];
	traffic = argv[2];
	argc -= 3;
	argv += 3;
	if (!strcmp(context, "prolog"))
		return slurm_spank_job_prolog(spank, argc, argv);
	if (!strcmp(context, "epilog"))
		return slurm_spank_job_epilog(spank, argc, argv);
	if (slurm_spank_init(spank, argc, argv))
		return 3;
	if (strcmp(traffic, "-") && registered->cb(registered->val, traffic, !strcmp(context, "remote")))
		return 255;
	return slurm_spank_init_post_opt(spank, argc, argv);
}
