/* The bytes of MADs, and MADs that are not the library's. */
#include "../mads.h"

#include "check.h"

static void inform(void)
{
	uint8_t mad[MAD_SIZE];
	uint32_t transaction;
	uint16_t status;

	memset(mad, 0xff, sizeof(mad));
	mad_inform(mad, TRAP_REPATH, true, 0x01020304);
	CHECK(!memcmp(mad, (const uint8_t[]){1, 3, 2, 2, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 0, 3}, 18), "headers");
	CHECK(!memcmp(mad + 56 + 16, (const uint8_t[]){0xff, 0xff, 0, 0, 0, 0, 1, 1, 0xff, 0xff, 0, 69, 0, 0, 1, 0x12, 0,
						       0xff, 0xff, 0xff, 0}, 21), "InformInfo");
	CHECK(!mad_is_inform_answer(mad, &transaction, &status), "a question is no answer");
	mad[3] = 0x81;
	mad[5] = 4;
	CHECK(mad_is_inform_answer(mad, &transaction, &status) && transaction == 0x01020304 && status == 4, "answer");
	mad_inform(mad, TRAP_UNPATH, false, 1);
	CHECK(mad[56 + 23] == 0 && mad[56 + 27] == 68, "unsubscribe");
}

static void report(void)
{
	const struct notice sent = {NOTICE_REPATH, 7, 9};
	uint8_t mad[MAD_SIZE] = {1, 3, 2, 6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 2};
	struct notice heard;

	CHECK(mad_is_report(mad), "report");
	CHECK(!mad_report_notice(mad, &heard), "an empty one");
	mad[56] = 0x83;
	mad[56 + 5] = 69;
	notice_pack(&sent, mad + 56 + 10);
	CHECK(mad_report_notice(mad, &heard) && heard.kind == NOTICE_REPATH && heard.update == 7 && heard.generation == 9,
	      "ours");
	mad[56 + 5] = 64;
	CHECK(!mad_report_notice(mad, &heard), "another trap");
	mad[5] = 1;
	mad_report_answer(mad);
	CHECK(mad[3] == 0x86 && !mad[5] && !mad_is_report(mad), "answered");
}

int main(void)
{
	inform();
	report();
	return checked("mads");
}
