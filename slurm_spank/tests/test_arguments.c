/* What users and administrators type: traffic patterns and key=value arguments. */
#include "../arguments.h"
#include "../traffic.h"

#include "check.h"

static void patterns(void)
{
	static const char *good[] = {"none", "ring", "stencil2d:8x4", "stencil3d:8x4x1", "shift:999999", "weight=0.2",
				     "weight=.001", "weight=100", "weight=1.", "weight=000.5"};
	static const char *bad[] = {"", "Ring", "ring ", "bogus", "stencil2d", "stencil2d:8", "stencil2d:8x", "stencil2d:0x4",
				    "stencil2d:8x4x2", "stencil3d:8x4", "shift:", "shift:-1", "shift:1000000", "shift:01",
				    "weight=", "weight=.", "weight=0", "weight=0.0009", "weight=100.1", "weight=1e1",
				    "weight=1000000000000", "weight=0.2000000", "weight=0.2x"};
	char deep[300];

	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++)
		CHECK(traffic_known(good[i]), "%s", good[i]);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		CHECK(!traffic_known(bad[i]), "\"%s\"", bad[i]);
	memset(deep, '1', sizeof(deep) - 1);
	deep[sizeof(deep) - 1] = '\0';
	CHECK(!traffic_known(deep), "long");
	CHECK(strstr(traffic_forms(), "ring, stencil2d:AxB, "), "%s", traffic_forms());
}

static void refused(const char *word, const char *expected)
{
	struct arguments a, before;
	struct reason why = {.text = ""};

	arguments_default(&a);
	before = a;
	CHECK(!arguments_take(&a, word, &why) && strstr(why.text, expected), "%s: \"%s\"", word, why.text);
	CHECK(!memcmp(&a, &before, sizeof(a)), "%s changed something", word);
}

static void valid_and_invalid_arguments(void)
{
	static const char *arguments[] = {"agent=[::1]:7777", "timeout=70", "munge_socket=/m", "state=/t",
				      "env_file=/e/%j", "allow=A:B", "agent_user=root", "debug=1", "key_timeout=0"};
	struct arguments a;
	struct reason why = {.text = ""};
	char deep[700] = "state=/", agent[6 + 108 + 1] = "agent=/";

	arguments_default(&a);
	CHECK(!*a.agent && a.timeout == 50 && !strcmp(a.state, "/run/sar-spank") && !a.debug, "defaults");
	CHECK(!strcmp(a.agent_user, "sar-agent"), "who may decode the messages");
	CHECK(!strcmp(a.allow, "UCX_IB_LID_PATH_BITS:UCX_IB_NUM_PATHS"), "no service levels unless the site says so");
	CHECK(a.key_timeout == 2000, "%u", a.key_timeout);
	for (size_t i = 0; i < sizeof(arguments) / sizeof(*arguments); i++)
		CHECK(arguments_take(&a, arguments[i], &why), "%s: %s", arguments[i], why.text);
	CHECK(!strcmp(a.agent, "[::1]:7777") && a.timeout == 70 && !strcmp(a.munge_socket, "/m"), "first");
	CHECK(!strcmp(a.state, "/t") && !strcmp(a.env_file, "/e/%j"), "folders");
	CHECK(!strcmp(a.agent_user, "root"), "user");
	CHECK(!strcmp(a.allow, "A:B") && a.debug && !a.key_timeout, "last");
	CHECK(arguments_take(&a, "agent=/run/sar-agent/events.sock", &why), "%s", why.text);
	CHECK(*a.agent, "there is an agent");
	refused("agnet=a:1", "unknown argument \"agnet\"");
	refused("agent", "key=value");
	refused("=x", "key=value");
	refused("agent=nowhere", "neither HOST:PORT nor a path");
	refused("agent=:7777", "neither HOST:PORT nor a path");
	refused("agent=host:", "neither HOST:PORT nor a path");
	memset(agent + 7, 'x', 107);
	refused(agent, "a path shorter than 108 characters");
	agent[6 + 107] = '\0';
	CHECK(arguments_take(&a, agent, &why), "107 characters: %s", why.text);
	refused("timeout=9", "10 to 100");
	refused("timeout=101", "10 to 100");
	refused("timeout=50ms", "10 to 100");
	refused("timeout=-1", "10 to 100");
	refused("key_timeout=8001", "0 to 8000");
	refused("key_timeout=", "0 to 8000");
	refused("key_timeout=-1", "0 to 8000");
	refused("debug=yes", "0 to 1");
	refused("state=relative", "absolute");
	memset(deep + 7, 'x', 600);
	refused(deep, "longer than");
}

int main(void)
{
	patterns();
	valid_and_invalid_arguments();
	return checked("arguments");
}
