/* An unknown or invalid option is an error: a typo must not go unnoticed and leave a site without its routes. */
#include "options.h"

#include <errno.h>
#include <grp.h>
#include <stdlib.h>
#include <string.h>

#define MOST_REPAIR_WAIT 10 /* seconds: a standby OpenSM takes over after 40 s by default */

static bool copy(char *to, size_t room, const char *key, const char *value, struct reason *why)
{
	if (*value != '/' || strlen(value) >= room)
		REFUSE("option %s must be an absolute path shorter than %zu characters", key, room);
	strcpy(to, value);
	return true;
}

static bool set_group(struct options *o, const char *value, struct reason *why)
{
	char *end;
	const unsigned long number = strtoul(value, &end, 10);
	const struct group *group = getgrnam(value);

	if (group)
		o->group = group->gr_gid;
	else if (*value && !*end && number < UINT32_MAX)
		o->group = (int64_t)number;
	else
		REFUSE("option group: there is no group \"%.60s\"", value);
	return true;
}

static bool set_seconds(unsigned *to, const char *key, const char *value, unsigned least, unsigned most, struct reason *why)
{
	char *end;
	const unsigned long seconds = strtoul(value, &end, 10);

	if (*value < '0' || *value > '9' || *end || seconds < least || seconds > most)
		REFUSE("option %s must be %u to %u seconds, not \"%.60s\"", key, least, most, value);
	*to = (unsigned)seconds;
	return true;
}

static bool set(struct options *o, const char *key, const char *value, struct reason *why)
{
	if (!strcmp(key, "dir"))
		return copy(o->folder, sizeof(o->folder), key, value, why);
	if (!strcmp(key, "socket"))
		return copy(o->socket_path, sizeof(o->socket_path), key, value, why);
	if (!strcmp(key, "group"))
		return set_group(o, value, why);
	if (!strcmp(key, "deadline"))
		return set_seconds(&o->deadline, key, value, 1, 3600, why);
	if (!strcmp(key, "repair_wait"))
		return set_seconds(&o->repair_wait, key, value, 0, MOST_REPAIR_WAIT, why);
	REFUSE("unknown option \"%.60s\"; valid are dir, socket, group, deadline and repair_wait", key);
}

bool options_parse(struct options *o, const char *text, struct reason *why)
{
	char *rest, *word, *copied = strdup(text ? text : "");
	bool good = copied != NULL;

	*o = (struct options){.folder = "/run/sar-agent", .group = -1, .deadline = 60, .repair_wait = 2};
	if (!copied)
		REASON(why, "no memory");
	for (word = good ? strtok_r(copied, " \t\n", &rest) : NULL; good && word;
	     word = strtok_r(NULL, " \t\n", &rest)) {
		char *value = strchr(word, '=');

		if (!value) {
			REASON(why, "option \"%.60s\" is not of the form key=value", word);
			good = false;
		} else {
			*value++ = '\0';
			good = set(o, word, value, why);
		}
	}
	free(copied);
	if (!good)
		return false;
	if (!*o->socket_path && (size_t)snprintf(o->socket_path, sizeof(o->socket_path),
						 "%s/bridge.sock", o->folder) >=
					sizeof(o->socket_path))
		REFUSE("dir is too long for the path of a socket; set socket=…, too");
	snprintf(o->routes_path, sizeof(o->routes_path), "%s/routes.sar", o->folder);
	snprintf(o->next_path, sizeof(o->next_path), "%s/routes.next", o->folder);
	snprintf(o->dump_path, sizeof(o->dump_path), "%s/in_force.sar", o->folder);
	return true;
}
