/* The parser of answers: valid ones, ones with keys of a later agent, and hostile ones. */
#include "../answer.h"

#include "check.h"

static struct answer good(const char *lines)
{
	struct answer a;

	CHECK(answer_parse(&a, lines), "%s", lines);
	return a;
}

static void bad(const char *lines)
{
	struct answer a;

	CHECK(!answer_parse(&a, lines) && !a.ok && !a.env.count && !*a.error, "%s", lines);
}

static void noise(void)
{
	static const char *seeds[] = {
		"ok\nenv UCX_IB_LID_PATH_BITS=2\nenv UCX_IB_SL=1\nmore [1,{\"a\":null}]\nnote no key",
		"ok\nlease 30.25\nphase repath\nupdate 12345678901234567890\ngeneration 3\nwait 0.5\noffset 2",
		"error a sentence \"quoted\" \xc3\xa9",
	};
	struct answer a;
	unsigned taken = 0;

	srandom(1);
	for (unsigned round = 0; round < 400000; round++) {
		char *text = strdup(seeds[round % 3]); /* of the exact size, so that ASan reports a read past its end */
		const size_t length = strlen(text);

		for (unsigned change = 0; change < 1 + round % 4; change++) {
			const char *bytes = "ok=. -e0ae1tfn\n\n\x01\x80";

			text[(size_t)random() % length] = round % 5 ? bytes[(size_t)random() % strlen(bytes)] : (char)random();
		}
		taken += answer_parse(&a, text);
		for (unsigned i = 0; i < a.env.count; i++)
			CHECK(strlen(a.env.variable[i].name) < 64 && strlen(a.env.variable[i].value) < 256, "%s", text);
		free(text);
	}
	CHECK(taken > 1000 && taken < 399000, "%u", taken);
}

static void variables(void)
{
	char many[5000], *at = many;
	struct answer a = good("ok\nenv UCX_IB_LID_PATH_BITS=all\nenv UCX_IB_NUM_PATHS=4");

	CHECK(a.env.count == 1 && !strcmp(a.env.variable[0].name, "UCX_IB_NUM_PATHS"), "values that hurt are left out");
	a = good("ok\nenv UCX_IB_SL=1\nenv B=a/b:c=%");
	CHECK(a.env.count == 2 && !strcmp(a.env.variable[0].name, "UCX_IB_SL"), "names");
	CHECK(!strcmp(a.env.variable[0].value, "1") && !strcmp(a.env.variable[1].value, "a/b:c=%"), "values");
	a = good("ok\nenv A B=1\nenv 1A=1\nenv =1\nenv A\nenv A=x;y\nenv B=x y\nenv C=\xc3\xa9\nenv D= \nenv F=");
	CHECK(a.env.count == 1 && !strcmp(a.env.variable[0].name, "F"), "%u unfit variables", a.env.count);
	a = good("ok\nenv A=1\nenv A=2");
	CHECK(a.env.count == 1 && !strcmp(a.env.variable[0].value, "2"), "twice");
	at += sprintf(at, "ok\nenv A=");
	memset(at, 'x', 300);
	sprintf(at + 300, "\nenv B=1");
	a = good(many);
	CHECK(a.env.count == 1 && *a.env.variable[0].name == 'B', "a long value is left out");
	at = many + sprintf(many, "ok");
	for (int i = 0; i < 40; i++)
		at += sprintf(at, "\nenv V%d=1", i);
	a = good(many);
	CHECK(a.env.count == MOST_VARIABLES, "%u", a.env.count);
	a = good("error no\xc2\xa0job 7");
	CHECK(!a.ok && !a.env.count && !strcmp(a.error, "no\xc2\xa0job 7"), "%s", a.error);
	memset(many, 'x', 4000);
	many[4000] = '\0';
	memcpy(many, "error ", 6);
	a = good(many);
	CHECK(strlen(a.error) == sizeof(a.error) - 1, "%zu", strlen(a.error));
}

int main(void)
{
	static const char *const hostile[] = {
		"", "\n", "ok\n", "\nok", "okay", "ok yes", "OK", "error", "{\"ok\":true}", "ok\r\nwait 1", "ok\nwait", "ok\n wait 1",
		"ok\nwait ", "ok\nwait 1 2", "ok\nwait -1", "ok\nwait 1e3", "ok\nwait 1.2.3", "ok\nwait .", "ok\nwait 2147483.648",
		"ok\noffset x", "ok\noffset 0x1", "ok\noffset 4294967296", "ok\nown 1 ", "ok\nupdate 18446744073709551616",
		"ok\nupdate -1", "ok\nupdate 1.x", "ok\nlease 18446744073709551615", "ok\nnote a\tb", "ok\nnote a\x1b[2J",
		"error a\nenv A=1", "error a\n", "ok\nenv A=1\n\nenv B=1", "env A=1\nok", NULL,
	};
	struct answer a = good("ok");

	CHECK(a.ok && !a.env.count && !a.lease && !*a.phase && !a.update && !a.generation, "plain");
	a = good("ok\nlater {\"x\":[]} \xc3\xa9\nwaiting 3\nwait 0.25");
	CHECK(a.ok && a.wait == 250, "what is not known is passed over");
	a = good("ok\nlease 30.0\nphase install\nupdate 18446744073709551615\ngeneration 7");
	CHECK(a.lease == 30000 && !strcmp(a.phase, "install") && a.update == UINT64_MAX && a.generation == 7, "update");
	a = good("ok\nlease .12345\nphase a long phase");
	CHECK(a.lease == 123 && !strcmp(a.phase, "a long "), "%u %s", a.lease, a.phase);
	a = good("ok\nlease 9999999999999");
	CHECK(a.lease == 86400000, "%u", a.lease);
	a = good("ok\nwait 3.4567\nnote all leased\nstate in_force\noffset 7");
	CHECK(a.wait == 3456 && !strcmp(a.note, "all leased"), "%u %s", a.wait, a.note);
	CHECK(!strcmp(a.state, "in_force") && a.offset == 7 && !a.own, "%s %u", a.state, a.offset);
	a = good("ok\nretry 2\nsentence no\nown 1\ntotal 12");
	CHECK(a.wait == 2000 && !strcmp(a.note, "no") && a.own == 1 && a.total == 12 && !a.offset, "%u", a.wait);
	variables();
	for (const char *const *lines = hostile; *lines; lines++)
		bad(*lines);
	noise();
	return checked("answer");
}
