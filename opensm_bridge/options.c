/* An unknown or invalid option is an error: a typo must not leave a site without its routes. */
#include "options.h"

#include <grp.h>
#include <stdlib.h>
#include <string.h>

#include "number.h"
#include "settings.h"

#define MOST_REPAIR_WAIT 10 /* seconds: a standby OpenSM takes over after 40 s by default */

static const struct setting all[] = {
	{"dir", offsetof(struct options, folder), SETTING_PATH, 1, sizeof(((struct options *)0)->folder) - 1, ""},
	{"socket", offsetof(struct options, socket_path), SETTING_PATH, 1, sizeof(((struct options *)0)->socket_path) - 1, ""},
	{"group", offsetof(struct options, group_name), SETTING_TEXT, 1, sizeof(((struct options *)0)->group_name) - 1, ""},
	{"deadline", offsetof(struct options, deadline), SETTING_NUMBER, 1, 3600, " seconds"},
	{"repair_wait", offsetof(struct options, repair_wait), SETTING_NUMBER, 0, MOST_REPAIR_WAIT, " seconds"},
};
static const struct settings settings = {"option", all, sizeof(all) / sizeof(*all)};

static bool find_group(struct options *o, struct reason *why)
{
	const struct group *group = getgrnam(o->group_name);
	uint64_t number;

	if (group)
		o->group = group->gr_gid;
	else if (number_within(o->group_name, 0, UINT32_MAX - 1, &number))
		o->group = (int64_t)number;
	else if (*o->group_name)
		REFUSE("option group: there is no group \"%.60s\"", o->group_name);
	return true;
}

bool options_parse(struct options *o, const char *text, struct reason *why)
{
	char *rest, *copied = strdup(text ? text : "");
	bool good = copied != NULL;

	*o = (struct options){.folder = "/run/sar-agent", .group = -1, .deadline = 60, .repair_wait = 2};
	if (!copied)
		REFUSE("no memory");
	for (char *word = strtok_r(copied, " \t\n", &rest); good && word; word = strtok_r(NULL, " \t\n", &rest))
		good = settings_take(&settings, o, word, why);
	free(copied);
	if (!good || !find_group(o, why))
		return false;
	if (!*o->socket_path && (size_t)snprintf(o->socket_path, sizeof(o->socket_path),
						 "%s/bridge.sock", o->folder) >=
					sizeof(o->socket_path))
		REFUSE("dir is too long for the path of a socket; set socket=…, too");
	snprintf(o->routes_path, sizeof(o->routes_path), "%s/routes.sar", o->folder);
	snprintf(o->next_path, sizeof(o->next_path), "%s/routes.next", o->folder);
	snprintf(o->dump_path, sizeof(o->dump_path), "%s/in_force.sar", o->folder);
	snprintf(o->fabric_path, sizeof(o->fabric_path), "%s/fabric.sar", o->folder);
	return true;
}
