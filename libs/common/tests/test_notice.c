/* Notices as text and as bytes; the test vectors are those of libs/migrate/PROTOCOL.md. */
#include "../notice.h"

#include "check.h"

static void refused(const char *arguments)
{
	struct notice n;
	struct reason why = {.text = ""};

	CHECK(!notice_parse(&n, arguments, &why) && strstr(why.text, "unpath or repath"), "\"%s\": \"%s\"", arguments,
	      why.text);
}

static void text(void)
{
	struct notice n;
	struct reason why = {.text = ""};

	CHECK(notice_parse(&n, "unpath 18446744073709551615 0", &why), "%s", why.text);
	CHECK(n.kind == NOTICE_UNPATH && n.update == UINT64_MAX && !n.generation, "largest");
	CHECK(notice_parse(&n, "repath 7 12", &why), "%s", why.text);
	CHECK(n.kind == NOTICE_REPATH && n.update == 7 && n.generation == 12, "numbers");
	refused("");
	refused("unpath");
	refused("unpath 7");
	refused("unpath 7 ");
	refused("unpath 7 8 9");
	refused("unpath 7 -8");
	refused("unpath 7  8");
	refused("unpath 0 8");
	refused("unpath 18446744073709551616 8");
	refused("unpath 99999999999999999999 8");
	refused("repath 7 8x");
	refused("path 7 8");
}

static void bytes(void)
{
	static const uint8_t expected[24] = {'S',  'A',	 'R',  '1',  1,	   0,	 0,    0,
					     0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08,
					     0,	   0,	 0,    0,    0,	   0,	 0x30, 0x39};
	const struct notice unpath = {NOTICE_UNPATH, 0x0102030405060708, 12345};
	uint8_t details[NOTICE_DETAILS_SIZE];
	struct notice n;

	memset(details, 0xff, sizeof(details));
	notice_pack(&unpath, details);
	for (int i = 0; i < NOTICE_OURS; i++)
		CHECK(!details[i], "byte %d", i);
	CHECK(!memcmp(details + NOTICE_OURS, expected, sizeof(expected)), "vector");
	CHECK(notice_unpack(&n, 68, details), "unpack");
	CHECK(n.kind == NOTICE_UNPATH && n.update == unpath.update && n.generation == 12345, "back again");
	CHECK(!notice_unpack(&n, 69, details), "the other trap");
	CHECK(!notice_unpack(&n, 64, details), "no trap of ours");
	details[NOTICE_OURS + 4] = 3;
	CHECK(!notice_unpack(&n, 69, details), "unknown kind");
	details[NOTICE_OURS + 4] = NOTICE_REPATH;
	CHECK(notice_unpack(&n, 69, details) && n.kind == NOTICE_REPATH, "repath");
	details[NOTICE_OURS] = 's';
	CHECK(!notice_unpack(&n, 69, details), "magic");
}

int main(void)
{
	text();
	bytes();
	return checked("notice");
}
