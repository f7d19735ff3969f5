/*
 * The Makefile generates the table from traffic.txt, so that Python and C cannot differ. In a form, a capital letter
 * stands for a number: W for one with decimals, any other letter for a whole number.
 */
#include "traffic.h"

#include <ctype.h>
#include <stdint.h>
#include <string.h>

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

static bool digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Skips a number from 1 to 999999 without leading zeros; NULL if there is none. */
static const char *whole(const char *at)
{
	const size_t digits = strspn(at, "0123456789");

	return digits && digits <= DIGITS && *at != '0' ? at + digits : NULL;
}

/* Skips a number from 0.001 to 100; NULL if there is none. Counts millionths, because strtod() depends on the user's
 * locale. */
static const char *decimal(const char *at)
{
	int64_t millionths = 0;
	unsigned before = 0, after = 0;

	for (; digit(*at); at++, before++)
		if (before < DIGITS)
			millionths = 10 * millionths + (*at - '0');
	millionths *= 1000000;
	if (*at == '.') {
		int64_t unit = 100000;

		for (at++; digit(*at); at++, after++, unit /= 10)
			millionths += unit * (*at - '0');
	}
	if (!(before || after) || before > DIGITS || after > DIGITS)
		return NULL;
	return millionths >= 1000 && millionths <= 100 * 1000000 ? at : NULL;
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
