/* A typo must not go unnoticed: a word that is no setting is refused, with the settings that there are. */
#include "settings.h"

#include <string.h>

#include "number.h"

static bool set(const char *noun, const struct setting *s, void *to, const char *value, struct reason *why)
{
	const size_t length = strlen(value);
	uint64_t number;

	if (s->kind == SETTING_NUMBER) {
		if (!number_within(value, s->least, s->most, &number))
			REFUSE("%s %s must be %u to %u%s, not \"%.60s\"", noun, s->key, s->least, s->most, s->unit, value);
		*(unsigned *)to = (unsigned)number;
		return true;
	}
	if (length > s->most)
		REFUSE("%s %s is longer than %u characters", noun, s->key, s->most);
	if (length < s->least || (s->kind == SETTING_PATH && *value && *value != '/'))
		REFUSE("%s %s must be %s, not \"%.60s\"", noun, s->key, s->kind == SETTING_PATH ? "an absolute path" : "given",
		       value);
	memcpy(to, value, length + 1);
	return true;
}

bool settings_take(const struct settings *settings, void *to, const char *word, struct reason *why)
{
	const char *equals = strchr(word, '=');
	const int key = equals ? (int)(equals - word) : 0;
	char valid[256] = "";
	size_t at = 0;

	if (!key)
		REFUSE("%s \"%.60s\" is not of the form key=value", settings->noun, word);
	for (size_t i = 0; i < settings->count; i++) {
		const struct setting *s = &settings->all[i];

		if (strlen(s->key) == (size_t)key && !memcmp(s->key, word, (size_t)key))
			return set(settings->noun, s, (char *)to + s->offset, equals + 1, why);
		at += (size_t)snprintf(valid + at, sizeof(valid) - at, "%s%s", i ? ", " : "", s->key);
	}
	REFUSE("unknown %s \"%.*s\"; valid are %s", settings->noun, key < 60 ? key : 60, word, valid);
}
