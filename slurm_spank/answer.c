/* Reads what PROTOCOL.md promises and passes over what a later agent may add. Nothing is allocated. */
#include "answer.h"

#include <stdio.h>
#include <string.h>

#define DEEPEST 8

struct scan {
	const char *at;
	unsigned depth;
};
struct string {
	char text[256];
	size_t length;
	bool whole; /* it had room, and no \u of anything but ASCII */
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
		const char *digits = "0123456789abcdef0123456789ABCDEF";
		const char *found = at[i] ? strchr(digits, at[i]) : NULL;

		if (!found)
			return -1;
		value = 16 * value + (int)((found - digits) % 16);
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
			return false; /* the end of the line, too */
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

/* Members of an object: `member` reads the value of a key. */
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
	if (name->whole && value.whole)
		(void)environment_add(to, name->text, name->length, value.text, value.length);
	return true;
}

/* A number with decimals, times 1000; strtod would depend on the user's locale. */
static bool thousandths(struct scan *s, unsigned *to)
{
	unsigned value = 0, decimals = 0;
	bool after = false;

	for (s->at += strspn(s->at, " \t"); (*s->at >= '0' && *s->at <= '9') || (*s->at == '.' && !after); s->at++) {
		if (*s->at == '.')
			after = true;
		else if (!after ? value < 400000 : decimals < 3) {
			value = 10 * value + (unsigned)(*s->at - '0');
			decimals += after;
		}
	}
	for (; decimals < 3; decimals++)
		value *= 10;
	*to = value;
	return true;
}

/* For a log: it must not pose as another line of it. */
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

static bool field(struct scan *s, const struct string *key, void *to)
{
	static const struct {
		const char *key;
		size_t place;
	} numbers[] = {
		{"offset", offsetof(struct answer, offset)},
		{"own", offsetof(struct answer, own)},
		{"total", offsetof(struct answer, total)},
	};
	struct answer *answer = to;
	unsigned value;

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
	if (blank_then(s) < '0' || *s->at > '9')
		return skip_value(s);
	if (!strcmp(key->text, "wait") || !strcmp(key->text, "retry"))
		return thousandths(s, &answer->wait);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		if (!strcmp(key->text, numbers[i].key) && thousandths(s, &value)) {
			*(unsigned *)((char *)answer + numbers[i].place) = value / 1000;
			return true;
		}
	return skip_value(s);
}

bool answer_read(struct answer *answer, const char *json)
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
