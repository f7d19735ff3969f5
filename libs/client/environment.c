/* The agent's answer ends up in the environment of users' processes, so names and values have a small alphabet. */
#include "environment.h"

#include <stdlib.h>
#include <string.h>

#include "number.h"

#define IN_NAMES "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789"
#define IN_VALUES IN_NAMES ".,:=+-/@%"

/* Copies a text of these characters, which must fit and have nothing else in it. */
static bool copy(char *to, size_t room, const char *text, size_t length, const char *alphabet)
{
	if (length >= room)
		return false;
	memcpy(to, text, length);
	to[length] = '\0';
	return strspn(to, alphabet) == length;
}

bool environment_add(struct environment *e, const char *name, size_t name_length, const char *value,
		     size_t value_length)
{
	struct variable new;
	unsigned i = 0;

	if (!copy(new.name, sizeof(new.name), name, name_length, IN_NAMES) || !*new.name || (*new.name >= '0' && *new.name <= '9') ||
	    !copy(new.value, sizeof(new.value), value, value_length, IN_VALUES))
		return false;
	while (i < e->count && strcmp(e->variable[i].name, new.name))
		i++;
	if (i == MOST_VARIABLES)
		return false;
	e->variable[i] = new;
	e->count += i == e->count;
	return true;
}

/* Numbers, ranges and lists of them (0-3,8), all up to `most`. */
static bool small_numbers(const char *value, unsigned long most)
{
	uint64_t number;

	do {
		value = number_parse(value, &number);
		if (!value || number > most)
			return false;
	} while (*value == '-' || *value == ',' ? value++ : NULL);
	return !*value;
}

bool environment_harmless(const char *name, const char *value)
{
	static const struct {
		const char *name;
		unsigned long most;
	} known[] = {
		{"UCX_IB_LID_PATH_BITS", 127}, {"UCX_IB_NUM_PATHS", 128}, {"UCX_IB_SL", 15}, {"NCCL_IB_SL", 15},
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (!strcmp(known[i].name, name))
			return small_numbers(value, known[i].most);
	return true;
}

bool environment_allows(const char *allow, const char *name)
{
	const size_t length = strlen(name);

	for (const char *word = allow; *word; word += strcspn(word, ":"), word += *word == ':')
		if (strcspn(word, ":") == length && !memcmp(word, name, length))
			return true;
	return false;
}

bool environment_number(const char *name, uint32_t *number)
{
	const char *text = getenv(name);
	uint64_t value = 0;
	const bool good = text && number_within(text, 0, UINT32_MAX, &value);

	*number = good ? (uint32_t)value : 0;
	return good;
}
