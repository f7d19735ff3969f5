/* The agent's answer ends up in the environment of users' processes, so names and values have a small alphabet. */
#include "environment.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_";
static const char others[] = "0123456789.,:=+-/@%"; /* in values; of these, names have digits only */

static bool is_of(char c, const char *alphabet)
{
	return c && strchr(alphabet, c);
}

static bool is_valid(const char *name, size_t name_length, const char *value, size_t value_length)
{
	if (!name_length || name_length >= sizeof(((struct variable *)0)->name) || !is_of(*name, letters) ||
	    value_length >= sizeof(((struct variable *)0)->value))
		return false;
	for (size_t i = 0; i < name_length; i++)
		if (!is_of(name[i], letters) && !(name[i] >= '0' && name[i] <= '9'))
			return false;
	for (size_t i = 0; i < value_length; i++)
		if (!is_of(value[i], letters) && !is_of(value[i], others))
			return false;
	return true;
}

bool environment_add(struct environment *e, const char *name, size_t name_length, const char *value,
		     size_t value_length)
{
	unsigned i;

	if (!is_valid(name, name_length, value, value_length))
		return false;
	for (i = 0; i < e->count; i++)
		if (strlen(e->variable[i].name) == name_length && !memcmp(e->variable[i].name, name, name_length))
			break;
	if (i == MOST_VARIABLES)
		return false;
	memcpy(e->variable[i].name, name, name_length);
	e->variable[i].name[name_length] = '\0';
	memcpy(e->variable[i].value, value, value_length);
	e->variable[i].value[value_length] = '\0';
	if (i == e->count)
		e->count++;
	return true;
}

/* Numbers, ranges and lists of them (0-3,8), all up to `most`. */
static bool small_numbers(const char *value, unsigned long most)
{
	char *end;

	do {
		if (*value < '0' || *value > '9' || strtoul(value, &end, 10) > most)
			return false;
		value = end + 1;
	} while (*end == '-' || *end == ',');
	return !*end;
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
	unsigned long value;
	char *end;

	*number = 0;
	if (!text || *text < '0' || *text > '9')
		return false;
	errno = 0;
	value = strtoul(text, &end, 10);
	if (*end || errno || value > UINT32_MAX)
		return false;
	*number = (uint32_t)value;
	return true;
}
