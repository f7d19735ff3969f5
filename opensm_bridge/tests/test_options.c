/* Parsing event_plugin_options. */
#include "../options.h"

#include "check.h"

static void refused(const char *text, const char *expected)
{
	struct options o;
	struct reason why = {.text = ""};

	CHECK(!options_parse(&o, text, &why) && strstr(why.text, expected), "%s: \"%s\"", text, why.text);
}

int main(void)
{
	struct options o;
	struct reason why = {.text = ""};
	char deep[300] = "dir=/";

	CHECK(options_parse(&o, NULL, &why), "%s", why.text);
	CHECK(!strcmp(o.socket_path, "/run/sar-agent/bridge.sock"), "%s", o.socket_path);
	CHECK(!strcmp(o.routes_path, "/run/sar-agent/routes.sar"), "%s", o.routes_path);
	CHECK(!strcmp(o.next_path, "/run/sar-agent/routes.next"), "%s", o.next_path);
	CHECK(o.group == -1 && o.deadline == 60 && o.repair_wait == 2, "defaults");
	CHECK(options_parse(&o, " dir=/a  socket=/b/c.sock group=root deadline=5 repair_wait=0\n", &why), "%s", why.text);
	CHECK(!strcmp(o.socket_path, "/b/c.sock") && !strcmp(o.dump_path, "/a/in_force.sar"), "paths");
	CHECK(o.group == 0 && o.deadline == 5 && !o.repair_wait, "numbers");
	refused("dri=/a", "unknown option \"dri\"");
	refused("dir", "key=value");
	refused("dir=relative", "absolute");
	refused("group=no-such-group", "no-such-group");
	refused("deadline=0", "deadline");
	refused("deadline=1x", "deadline");
	refused("repair_wait=11", "repair_wait");
	refused("repair_wait=", "repair_wait");
	refused("repair_wait=-1", "repair_wait");
	memset(deep + 5, 'x', 200);
	refused(deep, "socket");
	return checked("options");
}
