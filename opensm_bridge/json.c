/* See json.h. */
#include "json.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const char *json_escaped(char *to, size_t room, const char *from)
{
	size_t at = 0;

	for (; *from && at + 7 < room; from++) {
		const unsigned char c = (unsigned char)*from;

		if (c == '"' || c == '\\')
			at += (size_t)snprintf(to + at, room - at, "\\%c", c);
		else if (c < 0x20 || c > 0x7e) /* node descriptions may contain any byte */
			at += (size_t)snprintf(to + at, room - at, "\\u%04x", c);
		else
			to[at++] = (char)c;
	}
	to[at] = '\0';
	return to;
}

static void add(struct json *to, const char *text)
{
	const size_t left = to->room - to->length, length = strlen(text), fits = length < left ? length : left - 1;

	memcpy(to->text + to->length, text, fits);
	to->length += fits;
	to->text[to->length] = '\0';
}

static void add_name(struct json *to, const char *name)
{
	add(to, to->length ? ",\"" : "{\"");
	add(to, name);
	add(to, "\":");
}

void json_text(struct json *to, const char *name, const char *value)
{
	char escaped[1024];

	add_name(to, name);
	add(to, "\"");
	add(to, json_escaped(escaped, sizeof(escaped), value));
	add(to, "\"");
}

void json_number(struct json *to, const char *name, uintmax_t value)
{
	char digits[32];

	snprintf(digits, sizeof(digits), "%ju", value);
	add_name(to, name);
	add(to, digits);
}

void json_real(struct json *to, const char *name, double value)
{
	char digits[32];

	snprintf(digits, sizeof(digits), "%.9g", value);
	add_name(to, name);
	add(to, digits);
}

void json_truth(struct json *to, const char *name, bool value)
{
	add_name(to, name);
	add(to, value ? "true" : "false");
}

void json_end(struct json *to)
{
	add(to, "}");
}
