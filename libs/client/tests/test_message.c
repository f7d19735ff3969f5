/* The JSON of a request. */
#include "../message.h"

#include "check.h"

static void payloads(void)
{
	char payload[PAYLOAD_SIZE], many[6000], odd[] = "a\"b\\c\nd\xc3\xa9";
	struct message m = {.event = "start", .job = 4294967295U, .user = 1000, .nodes = "n[1-4]", .traffic = ""};
	size_t length;

	message_identify(&m);
	CHECK(strlen(m.id) == 16 && strspn(m.id, "0123456789abcdef") == 16, "%s", m.id);
	length = message_encode(&m, payload, sizeof(payload));
	CHECK(length == strlen(payload), "%zu", length);
	CHECK(!strncmp(payload, "{\"v\":1,\"event\":\"start\",\"job\":\"4294967295\",\"user\":1000,\"nodes\":\"n[1-4]\",\"at\":",
		       74), "%s", payload);
	CHECK(strstr(payload, m.id) && !strstr(payload, "traffic"), "%s", payload);
	CHECK(!strstr(payload, "offset") && !strstr(payload, "update"), "%s", payload);
	m.subscriber = "0123456789abcdef";
	m.phase = "unpath";
	m.update = UINT64_MAX;
	m.offset = 1;
	message_encode(&m, payload, sizeof(payload));
	CHECK(strstr(payload, "\"subscriber\":\"0123456789abcdef\",\"phase\":\"unpath\","
			      "\"update\":18446744073709551615,\"offset\":1,\"at\""), "%s", payload);
	m.subscriber = NULL;
	m.nodes = odd;
	m.user = -1;
	message_encode(&m, payload, sizeof(payload));
	CHECK(strstr(payload, "\"nodes\":\"a\\\"b\\\\c\\u000ad??\"") && !strstr(payload, "user"), "%s", payload);
	memset(many, 'n', sizeof(many) - 1);
	many[sizeof(many) - 1] = '\0';
	m.nodes = many;
	CHECK(message_encode(&m, payload, sizeof(payload)) && !strstr(payload, "nodes"), "too many nodes are left out");
	for (size_t room = 3900; room < 4100; room++) { /* around the limit */
		memset(many, '"', room / 2);
		many[room / 2] = '\0';
		length = message_encode(&m, payload, sizeof(payload));
		CHECK(length && length <= 4096 && length == strlen(payload), "%zu: %zu", room, length);
	}
	m.nodes = NULL;
	m.tasks = "2(x3),1";
	m.phase = "halo";
	m.pairs = (const int[]){0, 1, 1, 70000};
	m.pair_count = 2;
	CHECK(message_encode(&m, payload, sizeof(payload)) && strstr(payload, "\"phase\":\"halo\",\"tasks\":\"2(x3),1\","
						      "\"pairs\":[0,1,1,70000],\"at\":"), "%s", payload);
	m.traffic = many;
	memset(many, 't', sizeof(many) - 1);
	CHECK(!message_encode(&m, payload, sizeof(payload)), "nothing fits");
}

int main(void)
{
	payloads();
	return checked("message");
}
