/* A JSON parser for the keys of PROTOCOL.md. Unknown keys are skipped, so that a later agent may add some; nothing is
 * allocated. */
#include "answer.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#define DEEPEST 8
#define LONGEST_LEASE 86400000u

struct scan {
	const char *at;
	unsigned depth;
};
struct string {
	char text[256];
	size_t length;
	bool whole; /* the text fitted, and every \u escape was ASCII */
};

static bool skip_value(struct scan *s);

static char blank_then(struct scan *s)
{
	s->at += strspn(s->at, " \t\r\n");
	return *s->at;
}

static bool take(struct scan *s, char c)
{
	if (blank_then(s) != c)
		return false;
	s->at++;
	return true;
}

static int hex4(const char *at)
{
	int value = 0;

	for (int i = 0; i < 4; i++) {
		const char *hex = "0123456789abcdef0123456789ABCDEF";
		const char *position = at[i] ? strchr(hex, at[i]) : NULL;

		if (!position)
			return -1;
		value = 16 * value + (int)((position - hex) % 16);
	}
	return value;
}

static void append(struct string *to, int c)
{
	if (c <= 0 || c > 127 || to->length + 1 >= sizeof(to->text))
		to->whole = false;
	else
		to->text[to->length++] = (char)c;
	to->text[to->length] = '\0';
}

static bool string(struct scan *s, struct string *to)
{
	static const char escapes[] = "\"\\/bfnrt", means[] = "\"\\/\b\f\n\r\t";

	*to = (struct string){.whole = true};
	if (!take(s, '"'))
		return false;
	for (; *s->at != '"'; s->at++) {
		const char *escape;
		int c = (unsigned char)*s->at;

		if (c < ' ')
			return false; /* a control character, or the end of the line */
		if (c == '\\' && s->at[1] == 'u') {
			c = hex4(s->at + 2);
			if (c < 0)
				return false;
			s->at += 5;
		} else if (c == '\\') {
			escape = s->at[1] ? strchr(escapes, s->at[1]) : NULL;
			if (!escape)
				return false;
			c = (unsigned char)means[escape - escapes];
			s->at++;
		}
		append(to, c);
	}
	s->at++;
	return true;
}

/* Parses an object; `member` parses the value of each key. */
static bool object(struct scan *s, bool (*member)(struct scan *, const struct string *, void *), void *to)
{
	struct string key;

	if (!take(s, '{') || ++s->depth > DEEPEST)
		return false;
	if (blank_then(s) != '}')
		do {
			if (!string(s, &key) || !take(s, ':') || !member(s, &key, to))
				return false;
		} while (take(s, ','));
	s->depth--;
	return take(s, '}');
}

static bool skip_member(struct scan *s, const struct string *key, void *to)
{
	(void)key;
	(void)to;
	return skip_value(s);
}

static bool skip_array(struct scan *s)
{
	if (!take(s, '[') || ++s->depth > DEEPEST)
		return false;
	if (blank_then(s) != ']')
		do {
			if (!skip_value(s))
				return false;
		} while (take(s, ','));
	s->depth--;
	return take(s, ']');
}

static bool word(struct scan *s, const char *expected)
{
	const size_t length = strlen(expected);

	(void)blank_then(s);
	if (strncmp(s->at, expected, length))
		return false;
	s->at += length;
	return true;
}

static bool skip_value(struct scan *s)
{
	struct string unused;
	size_t length;

	switch (blank_then(s)) {
	case '"':
		return string(s, &unused);
	case '{':
		return object(s, skip_member, NULL);
	case '[':
		return skip_array(s);
	default:
		length = strspn(s->at, "0123456789+-.eE");
		s->at += length;
		return length || word(s, "true") || word(s, "false") || word(s, "null");
	}
}

static bool variable(struct scan *s, const struct string *name, void *to)
{
	struct string value;

	if (!string(s, &value))
		return false;
	if (name->whole && value.whole && environment_harmless(name->text, value.text))
		(void)environment_add(to, name->text, name->length, value.text, value.length);
	return true;
}

/* Parses digits with at most one decimal point, in units of 10^-decimals; independent of the locale. False for any
 * other form and for a number that is too large. */
static bool number(struct scan *s, unsigned decimals, uint64_t *value)
{
	uint64_t sum = 0;
	bool point = false;
	unsigned kept = 0, digits = 0;

	for (blank_then(s); (*s->at >= '0' && *s->at <= '9') || (*s->at == '.' && !point); s->at++) {
		const uint64_t digit = (uint64_t)(*s->at - '0');

		if (*s->at == '.') {
			point = true;
			continue;
		}
		digits++;
		if (point && kept++ >= decimals)
			continue;
		if (sum > (UINT64_MAX - digit) / 10)
			return false;
		sum = 10 * sum + digit;
	}
	for (; kept < decimals; kept++, sum *= 10)
		if (sum > UINT64_MAX / 10)
			return false;
	*value = sum;
	return digits > 0 && *s->at != 'e' && *s->at != 'E';
}

/* A text for a log: control characters become blanks, so that it cannot look like another line. */
static bool sentence(struct scan *s, char *to, size_t room)
{
	struct string text;

	if (!string(s, &text))
		return false;
	snprintf(to, room, "%.199s", text.text);
	for (char *c = to; *c; c++)
		if (*c < ' ')
			*c = ' ';
	return true;
}

static bool update_field(struct scan *s, const char *key, struct answer *answer)
{
	struct string phase;
	uint64_t lease;

	if (!strcmp(key, "update"))
		return number(s, 0, &answer->update);
	if (!strcmp(key, "generation"))
		return number(s, 0, &answer->generation);
	if (!strcmp(key, "lease")) {
		if (!number(s, 3, &lease))
			return false;
		answer->lease = lease < LONGEST_LEASE ? (unsigned)lease : LONGEST_LEASE;
		return true;
	}
	if (!string(s, &phase))
		return false;
	snprintf(answer->phase, sizeof(answer->phase), "%.7s", phase.text);
	return true;
}

static bool field(struct scan *s, const struct string *key, void *to)
{
	static const struct {
		const char *key;
		size_t offset;
		unsigned decimals;
	} numbers[] = {
		{"offset", offsetof(struct answer, offset), 0}, {"own", offsetof(struct answer, own), 0},
		{"total", offsetof(struct answer, total), 0},	{"wait", offsetof(struct answer, wait), 3},
		{"retry", offsetof(struct answer, wait), 3},
	};
	static const char *update_keys[] = {"update", "generation", "lease", "phase"};
	struct answer *answer = to;
	uint64_t value;

	if (!strcmp(key->text, "ok")) {
		answer->ok = word(s, "true");
		return answer->ok || word(s, "false");
	}
	if (!strcmp(key->text, "env"))
		return object(s, variable, &answer->env);
	if (!strcmp(key->text, "error") && blank_then(s) == '"')
		return sentence(s, answer->error, sizeof(answer->error));
	if ((!strcmp(key->text, "note") || !strcmp(key->text, "sentence")) && blank_then(s) == '"')
		return sentence(s, answer->note, sizeof(answer->note));
	if (!strcmp(key->text, "state") && blank_then(s) == '"')
		return sentence(s, answer->state, sizeof(answer->state));
	for (size_t i = 0; i < sizeof(update_keys) / sizeof(*update_keys); i++)
		if (!strcmp(key->text, update_keys[i]))
			return update_field(s, key->text, answer);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		if (!strcmp(key->text, numbers[i].key) && blank_then(s) >= '0' && *s->at <= '9') {
			if (!number(s, numbers[i].decimals, &value) || value > INT_MAX)
				return false;
			*(unsigned *)((char *)answer + numbers[i].offset) = (unsigned)value;
			return true;
		}
	return skip_value(s);
}

bool answer_parse(struct answer *answer, const char *json)
{
	struct scan s = {json, 0};

	*answer = (struct answer){.ok = false};
	if (!object(&s, field, answer) || blank_then(&s)) {
		*answer = (struct answer){.ok = false};
		return false;
	}
	if (!answer->ok)
		answer->env.count = 0;
	return true;
}
