/* Which variables an answer may set. */
#include "../environment.h"

#include "check.h"

static void numbers(void)
{
	static const char *const bad[] = {"", "x", "-1", "+1", " 1", "7x", "4294967296", "99999999999999999999"};
	uint32_t number = 1;

	unsetenv("NUMBER");
	CHECK(!environment_number("NUMBER", &number) && !number, "unset");
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		CHECK(!setenv("NUMBER", bad[i], 1) && !environment_number("NUMBER", &number) && !number, "\"%s\"", bad[i]);
	setenv("NUMBER", "4294967295", 1);
	CHECK(environment_number("NUMBER", &number) && number == UINT32_MAX, "%u", number);
}

int main(void)
{
	numbers();
	for (const char *const *good = (const char *const[]){"0", "2", "127", "0-3", "0-3,8", NULL}; *good; good++)
		CHECK(environment_harmless("UCX_IB_LID_PATH_BITS", *good), "a small number");
	for (const char *const *bad = (const char *const[]){"", "128", "-1", "+1", "a", "1 ", "1,", "0-", "1e9", "0x1",
							    "99999999999999999999999", "1;2", "0-128", NULL};
	     *bad; bad++)
		CHECK(!environment_harmless("UCX_IB_LID_PATH_BITS", *bad), "not a small number");
	CHECK(environment_harmless("SITE_A", "b/c") && !environment_harmless("UCX_IB_SL", "16"), "by name");
	CHECK(environment_allows("A:UCX_IB_SL", "UCX_IB_SL") && environment_allows("A:B", "A"), "allowed");
	CHECK(!environment_allows("A:UCX_IB_SLX", "UCX_IB_SL") && !environment_allows("", "A"), "not allowed");
	return checked("environment");
}
