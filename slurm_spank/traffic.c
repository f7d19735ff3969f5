/*
 * The Makefile generates the table from traffic.txt, so that Python and C cannot differ. In a form, a capital letter
 * stands for a number: W for one with decimals, any other letter for a whole number.
 */
#include "traffic.h"

#include <ctype.h>
#include <string.h>

#include "number.h"

static const struct {
	const char *form, *meaning;
} table[] = {
#include "traffic_table.inc"
};
static const char forms[] =
#include "traffic_forms.inc"
	;
#define FORMS (sizeof(table) / sizeof(*table))
#define DIGITS 6

/* Skips a number from 1 to 999999 without leading zeros; NULL if there is none. */
static const char *whole(const char *at)
{
	const size_t digits = strspn(at, "0123456789");

	return digits && digits <= DIGITS && *at != '0' ? at + digits : NULL;
}

/* Skips a number from 0.001 to 100 with at most six digits before and after the point; NULL if there is none. */
static const char *decimal(const char *at)
{
	uint64_t millionths;
	const char *end = strspn(at, "0123456789") <= DIGITS ? number_decimal(at, 6, &millionths) : NULL;

	return end && millionths >= 1000 && millionths <= 100 * 1000000 ? end : NULL;
}

static bool has_form(const char *text, const char *form)
{
	for (; *form; form++) {
		if (!isupper((unsigned char)*form)) {
			if (*text++ != *form)
				return false;
			continue;
		}
		text = *form == 'W' ? decimal(text) : whole(text);
		if (!text)
			return false;
	}
	return !*text;
}

bool traffic_known(const char *text)
{
	if (strlen(text) >= TRAFFIC_SIZE)
		return false;
	for (size_t i = 0; i < FORMS; i++)
		if (has_form(text, table[i].form))
			return true;
	return false;
}

void traffic_help(FILE *to)
{
	fputs("--sar-traffic=PATTERN: what the job's traffic looks like, so that routes can be made for it.\n",
	      to);
	for (size_t i = 0; i < FORMS; i++)
		fprintf(to, "  %-17s %s\n", table[i].form, table[i].meaning);
	fputs("A capital is a number to fill in: stencil2d:8x4, shift:3, weight=0.2.\n", to);
}

const char *traffic_forms(void)
{
	return forms;
}
