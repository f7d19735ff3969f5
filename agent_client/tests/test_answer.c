/* The parser of answers: valid ones, ones with keys of a later agent, and invalid ones. */
#include "../answer.h"

#include "check.h"

static struct answer good(const char *json)
{
	struct answer a;

	CHECK(answer_parse(&a, json), "%s", json);
	return a;
}

static void bad(const char *json)
{
	struct answer a;

	CHECK(!answer_parse(&a, json) && !a.ok && !a.env.count, "%s", json);
}

static void noise(void)
{
	static const char *seeds[] = {
		"{\"ok\":true,\"env\":{\"UCX_IB_LID_PATH_BITS\":\"2\",\"UCX_IB_SL\":\"\\u0031\"},\"more\":[1,{\"a\":null}]}",
		"{\"ok\":true,\"lease\":30.25,\"phase\":\"repath\",\"update\":12345678901234567890,\"generation\":3}",
		"{\"ok\":false,\"error\":\"a sentence \\\"quoted\\\" \\u00e9\",\"note\":\"x\",\"wait\":0.5,\"state\":\"none\"}",
	};
	struct answer a;
	unsigned taken = 0;

	srandom(1);
	for (unsigned round = 0; round < 400000; round++) {
		char *text = strdup(seeds[round % 3]); /* of the exact size, so that ASan reports a read past its end */
		const size_t length = strlen(text);

		for (unsigned change = 0; change < 1 + round % 4; change++) {
			const char *bytes = "{}[]\",:\\u0ae1tfn \n\x01\x80";

			text[(size_t)random() % length] = round % 5 ? bytes[(size_t)random() % strlen(bytes)] : (char)random();
		}
		taken += answer_parse(&a, text);
		for (unsigned i = 0; i < a.env.count; i++)
			CHECK(strlen(a.env.variable[i].name) < 64 && strlen(a.env.variable[i].value) < 256, "%s", text);
		free(text);
	}
	CHECK(taken > 1000 && taken < 399000, "%u", taken);
}

int main(void)
{
	struct answer a = good("{\"ok\":true}");
	char deep[5000], *at = deep;

	CHECK(a.ok && !a.env.count, "plain");
	a = good("{\"ok\":true,\"env\":{\"UCX_IB_LID_PATH_BITS\":\"all\",\"UCX_IB_NUM_PATHS\":\"4\"}}");
	CHECK(a.env.count == 1 && !strcmp(a.env.variable[0].name, "UCX_IB_NUM_PATHS"), "values that hurt are left out");
	a = good(" { \"ok\" : true , \"env\" : { \"UCX_IB_SL\" : \"1\" , \"B\":\"a/b:c=%\" } } \r");
	CHECK(a.env.count == 2 && !strcmp(a.env.variable[0].name, "UCX_IB_SL"), "names");
	CHECK(!strcmp(a.env.variable[0].value, "1") && !strcmp(a.env.variable[1].value, "a/b:c=%"), "values");
	a = good("{\"ok\":false,\"error\":\"no \\\"such\\\"\\njob\",\"env\":{\"A\":\"1\"}}");
	CHECK(!a.ok && !a.env.count && !strcmp(a.error, "no \"such\" job"), "%s", a.error);
	a = good("{\"v\":2,\"later\":[1,-2.5e3,{\"x\":[]},\"\\u00e9\",true,null],\"ok\":true,\"env\":{}}");
	CHECK(a.ok, "what is not known is passed over");
	CHECK(!a.lease && !*a.phase && !a.update && !a.generation, "not said");
	a = good("{\"ok\":true,\"lease\":30.0,\"phase\":\"install\",\"update\":18446744073709551615,\"generation\":7}");
	CHECK(a.lease == 30000 && !strcmp(a.phase, "install") && a.update == UINT64_MAX && a.generation == 7, "update");
	a = good("{\"ok\":true,\"lease\": .12345 ,\"phase\":\"a long phase\"}");
	CHECK(a.lease == 123 && !strcmp(a.phase, "a long "), "%u %s", a.lease, a.phase);
	a = good("{\"ok\":true,\"lease\":9999999999999}");
	CHECK(a.lease == 86400000, "%u", a.lease);
	bad("{\"ok\":true,\"update\":18446744073709551616}");
	bad("{\"ok\":true,\"update\":-1}");
	bad("{\"ok\":true,\"update\":\"1\"}");
	bad("{\"ok\":true,\"lease\":1e3}");
	bad("{\"ok\":true,\"lease\":1.2.3}");
	bad("{\"ok\":true,\"lease\":}");
	bad("{\"ok\":true,\"phase\":1}");
	a = good("{\"ok\":true,\"env\":{\"A B\":\"1\",\"1A\":\"1\",\"\":\"1\",\"A\":\"x;y\",\"B\":\"x y\",\"C\":\"\\u00e9\","
		 "\"D\":\"a\\nb\",\"E\":\"\\u0000\",\"F\":\"\",\"LD_PRELOAD=\":\"x\"}}");
	CHECK(a.env.count == 1 && !strcmp(a.env.variable[0].name, "F"), "%u unfit variables", a.env.count);
	a = good("{\"ok\":true,\"env\":{\"A\":\"1\",\"A\":\"2\"}}");
	CHECK(a.env.count == 1 && !strcmp(a.env.variable[0].value, "2"), "twice");
	at += sprintf(at, "{\"ok\":true,\"env\":{\"A\":\"");
	memset(at, 'x', 300);
	sprintf(at + 300, "\",\"B\":\"1\"}}");
	a = good(deep);
	CHECK(a.env.count == 1 && *a.env.variable[0].name == 'B', "a long value is left out");
	at = deep + sprintf(deep, "{\"ok\":true,\"env\":{");
	for (int i = 0; i < 40; i++)
		at += sprintf(at, "%s\"V%d\":\"1\"", i ? "," : "", i);
	sprintf(at, "}}");
	a = good(deep);
	CHECK(a.env.count == MOST_VARIABLES, "%u", a.env.count);
	a = good("{\"ok\":true,\"wait\":0.25}");
	CHECK(a.ok && a.wait == 250, "%u", a.wait);
	a = good("{\"ok\":true,\"wait\":3.4567,\"note\":\"all\\nleased\",\"state\":\"in_force\",\"offset\":7}");
	CHECK(a.wait == 3456 && !strcmp(a.note, "all leased"), "%u %s", a.wait, a.note);
	CHECK(!strcmp(a.state, "in_force") && a.offset == 7 && !a.own, "%s %u", a.state, a.offset);
	a = good("{\"ok\":true,\"retry\":2,\"sentence\":\"no\",\"own\":1,\"total\":12,\"offset\":-1,\"wait\":null}");
	CHECK(a.wait == 2000 && !strcmp(a.note, "no") && a.own == 1 && a.total == 12 && !a.offset, "%u", a.wait);
	bad("");
	bad("{}x");
	bad("[]");
	bad("{\"ok\":true");
	bad("{\"ok\":yes}");
	bad("{\"ok\":true,}");
	bad("{\"ok\":true,\"env\":[]}");
	bad("{\"ok\":true,\"env\":{\"A\":1}}");
	bad("{\"ok\":true}{");
	bad("{\"ok\":true,\"x\":\"\\q\"}");
	bad("{\"ok\":true,\"x\":\"\\u12\"}");
	bad("{\"ok\":true,\"x\":\"\\");
	memset(deep, '[', 4000);
	memcpy(deep, "{\"x\":", 5);
	deep[4000] = '\0';
	bad(deep);
	noise();
	return checked("answer");
}
