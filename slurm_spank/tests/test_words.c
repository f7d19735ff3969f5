/* What users and administrators type, and the message that is made of it. */
#include "../arguments.h"
#include "../message.h"
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

static void argument_words(void)
{
	static const char *words[] = {"agent=[::1]:7777", "timeout=70", "munge_socket=/m", "spool=/s", "state=/t",
				      "env_file=/e/%j", "allow=A:B", "debug=1", "key_timeout=0"};
	struct arguments a;
	struct reason why = {.text = ""};
	char deep[700] = "spool=/";

	arguments_default(&a);
	CHECK(!*a.agent && a.timeout == 50 && !strcmp(a.state, "/run/sar-spank") && !a.debug, "defaults");
	CHECK(a.key_timeout == 2000, "%u", a.key_timeout);
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		CHECK(arguments_take(&a, words[i], &why), "%s: %s", words[i], why.text);
	CHECK(!strcmp(a.agent, "[::1]:7777") && a.timeout == 70 && !strcmp(a.munge_socket, "/m"), "first");
	CHECK(!strcmp(a.spool, "/s") && !strcmp(a.state, "/t") && !strcmp(a.env_file, "/e/%j"), "folders");
	CHECK(!strcmp(a.allow, "A:B") && a.debug && !a.key_timeout, "last");
	CHECK(arguments_take(&a, "agent=/run/sar-agent/events.sock", &why), "%s", why.text);
	refused("agnet=a:1", "unknown argument \"agnet=a:1\"");
	refused("agent", "key=value");
	refused("=x", "key=value");
	refused("agent=nowhere", "neither HOST:PORT nor a path");
	refused("agent=:7777", "neither HOST:PORT nor a path");
	refused("agent=host:", "neither HOST:PORT nor a path");
	refused("timeout=9", "10 to 100");
	refused("timeout=101", "10 to 100");
	refused("timeout=50ms", "10 to 100");
	refused("timeout=-1", "10 to 100");
	refused("key_timeout=8001", "0 to 8000");
	refused("key_timeout=", "0 to 8000");
	refused("key_timeout=-1", "0 to 8000");
	refused("debug=yes", "unknown argument");
	refused("spool=relative", "absolute");
	memset(deep + 7, 'x', 600);
	refused(deep, "longer than");
}

static void payloads(void)
{
	char payload[PAYLOAD_SIZE], many[6000], odd[] = "a\"b\\c\nd\xc3\xa9";
	struct message m = {.event = "start", .job = 4294967295U, .user = 1000, .nodes = "n[1-4]", .traffic = ""};
	size_t length;

	message_identify(&m);
	CHECK(strlen(m.id) == 16 && strspn(m.id, "0123456789abcdef") == 16, "%s", m.id);
	length = message_payload(&m, payload);
	CHECK(length == strlen(payload), "%zu", length);
	CHECK(!strncmp(payload, "{\"v\":1,\"event\":\"start\",\"job\":\"4294967295\",\"user\":1000,\"nodes\":\"n[1-4]\",\"at\":",
		       74), "%s", payload);
	CHECK(strstr(payload, m.id) && !strstr(payload, "traffic"), "%s", payload);
	CHECK(!strstr(payload, "offset") && !strstr(payload, "update"), "%s", payload);
	m.subscriber = "0123456789abcdef";
	m.phase = "unpath";
	m.update = UINT64_MAX;
	m.offset = 1;
	message_payload(&m, payload);
	CHECK(strstr(payload, "\"subscriber\":\"0123456789abcdef\",\"phase\":\"unpath\","
			      "\"update\":18446744073709551615,\"offset\":1,\"at\""), "%s", payload);
	m.subscriber = NULL;
	m.nodes = odd;
	m.user = -1;
	message_payload(&m, payload);
	CHECK(strstr(payload, "\"nodes\":\"a\\\"b\\\\c\\u000ad??\"") && !strstr(payload, "user"), "%s", payload);
	memset(many, 'n', sizeof(many) - 1);
	many[sizeof(many) - 1] = '\0';
	m.nodes = many;
	CHECK(message_payload(&m, payload) && !strstr(payload, "nodes"), "too many nodes are left out");
	for (size_t room = 3900; room < 4100; room++) { /* around the limit */
		memset(many, '"', room / 2);
		many[room / 2] = '\0';
		length = message_payload(&m, payload);
		CHECK(length && length <= 4096 && length == strlen(payload), "%zu: %zu", room, length);
	}
	m.nodes = NULL;
	m.tasks = "2(x3),1";
	m.phase = "halo";
	m.lease = 90500;
	m.pairs = (const int[]){0, 1, 1, 70000};
	m.pair_count = 2;
	CHECK(message_payload(&m, payload) && strstr(payload, "\"phase\":\"halo\",\"tasks\":\"2(x3),1\",\"lease\":90.500,"
						      "\"pairs\":[0,1,1,70000],\"at\":"), "%s", payload);
	m.traffic = many;
	memset(many, 't', sizeof(many) - 1);
	CHECK(!message_payload(&m, payload), "nothing fits");
}

int main(void)
{
	patterns();
	argument_words();
	payloads();
	return checked("words");
}
