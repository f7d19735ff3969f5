/* The plugin's `event_plugin_options`: key=value pairs separated by blanks. */
#pragma once
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "reason.h"

struct options {
	char routes_path[PATH_MAX], next_path[PATH_MAX], dump_path[PATH_MAX], fabric_path[PATH_MAX];
	char folder[PATH_MAX - 32];
	char socket_path[108]; /* the size of sun_path */
	char group_name[64];   /* the group that owns the socket; "": OpenSM's own */
	int64_t group;	       /* the same; -1: OpenSM's own */
	unsigned deadline;     /* seconds that one `load` may take */
	unsigned repair_wait;  /* seconds that a routing waits for the agent where no repair serves; 0: it does not */
};

/* `text` may be NULL, for the defaults. */
bool options_parse(struct options *options, const char *text, struct reason *why);
