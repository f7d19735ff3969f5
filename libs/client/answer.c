/* Nothing is allocated. Unknown keys are skipped, so that a later agent may add some. */
#include "answer.h"

#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "number.h"

#define LONGEST_LEASE 86400000u

/* Parses a number that is all of the text, in units or in thousandths; false for one above `most`. */
static bool number(const char *text, size_t length, bool thousandths, uint64_t most, uint64_t *value)
{
	const char *end = thousandths ? number_decimal(text, 3, value) : number_parse(text, value);

	while (thousandths && end && *end >= '0' && *end <= '9')
		end++; /* less than a thousandth */
	return end == text + length && *value <= most;
}

static void variable(struct environment *to, const char *text, size_t length)
{
	struct variable new;
	const char *equals = memchr(text, '=', length);
	const size_t name = equals ? (size_t)(equals - text) : length, value = length - name - !!equals;

	if (!equals || name >= sizeof(new.name) || value >= sizeof(new.value))
		return;
	snprintf(new.name, sizeof(new.name), "%.*s", (int)name, text);
	snprintf(new.value, sizeof(new.value), "%.*s", (int)value, equals + 1);
	if (environment_harmless(new.name, new.value))
		(void)environment_add(to, new.name, name, new.value, value);
}

static bool is_key(const char *line, size_t length, const char *key)
{
	return strlen(key) == length && !memcmp(line, key, length);
}

static bool field(struct answer *answer, const char *key, size_t key_length, const char *value, size_t length)
{
	const struct {
		const char *key;
		char *text;
		size_t room;
	} texts[] = {
		{"note", answer->note, sizeof(answer->note)},
		{"sentence", answer->note, sizeof(answer->note)},
		{"state", answer->state, sizeof(answer->state)},
		{"phase", answer->phase, sizeof(answer->phase)},
	};
	const struct {
		const char *key;
		unsigned *number;
		bool thousandths;
	} numbers[] = {
		{"offset", &answer->offset, false}, {"own", &answer->own, false}, {"total", &answer->total, false},
		{"wait", &answer->wait, true},     {"retry", &answer->wait, true},
	};
	uint64_t parsed;

	if (is_key(key, key_length, "env"))
		return variable(&answer->env, value, length), true;
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		if (is_key(key, key_length, texts[i].key))
			return snprintf(texts[i].text, texts[i].room, "%.*s", (int)length, value), true;
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		if (is_key(key, key_length, numbers[i].key)) {
			if (!number(value, length, numbers[i].thousandths, INT_MAX, &parsed))
				return false;
			*numbers[i].number = (unsigned)parsed;
			return true;
		}
	if (is_key(key, key_length, "update"))
		return number(value, length, false, UINT64_MAX, &answer->update);
	if (is_key(key, key_length, "generation"))
		return number(value, length, false, UINT64_MAX, &answer->generation);
	if (is_key(key, key_length, "lease")) {
		if (!number(value, length, true, UINT64_MAX, &parsed))
			return false;
		answer->lease = parsed < LONGEST_LEASE ? (unsigned)parsed : LONGEST_LEASE;
	}
	return true;
}

static bool parse(struct answer *answer, const char *line)
{
	size_t length = strcspn(line, "\n");

	if (!strncmp(line, "error ", 6) && !line[length])
		return snprintf(answer->error, sizeof(answer->error), "%.*s", (int)length - 6, line + 6), true;
	if (!is_key(line, length, "ok"))
		return false;
	answer->ok = true;
	while (line[length]) {
		size_t key;

		line += length + 1;
		length = strcspn(line, "\n");
		key = strcspn(line, " \n");
		if (!key || key == length || !field(answer, line, key, line + key + 1, length - key - 1))
			return false;
	}
	return true;
}

bool answer_parse(struct answer *answer, const char *lines)
{
	*answer = (struct answer){.ok = false};
	for (const char *c = lines; *c; c++) /* a sentence ends up in logs */
		if (*c > 0 && *c < ' ' && *c != '\n')
			return false;
	if (parse(answer, lines))
		return true;
	*answer = (struct answer){.ok = false};
	return false;
}
