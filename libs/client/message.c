/* The JSON is written by hand: it has a few flat fields, and nothing is allocated inside a user's job. */
#include "message.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

struct text {
	char *at, *end; /* `at` is NULL once something did not fit */
};

static void put(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void put(struct text *text, const char *format, ...)
{
	va_list arguments;
	int length;

	if (!text->at)
		return;
	va_start(arguments, format);
	length = vsnprintf(text->at, (size_t)(text->end - text->at), format, arguments);
	va_end(arguments);
	text->at = length < 0 || length >= text->end - text->at ? NULL : text->at + length;
}

/* Escapes quotes, backslashes and control characters. No valid value has other than ASCII, so that becomes '?'. */
static void put_string(struct text *text, const char *key, const char *value)
{
	if (!value || !*value)
		return;
	put(text, ",\"%s\":\"", key);
	for (; *value; value++) {
		const unsigned char c = (unsigned char)*value;

		if (c == '"' || c == '\\')
			put(text, "\\%c", c);
		else if (c < ' ' || c == 127)
			put(text, "\\u%04x", c);
		else
			put(text, "%c", c < 128 ? c : '?');
	}
	put(text, "\"");
}

void message_identify(struct message *message)
{
	uint64_t random;

	if (getrandom(&random, sizeof(random), GRND_NONBLOCK) != sizeof(random)) {
		struct timespec now; /* no entropy: the machine has just booted; the id need not be secret */

		clock_gettime(CLOCK_REALTIME, &now);
		random = ((uint64_t)now.tv_sec << 32) ^ ((uint64_t)now.tv_nsec << 12) ^ (uint64_t)getpid();
	}
	snprintf(message->id, sizeof(message->id), "%016" PRIx64, random);
}

static size_t encode(const struct message *m, const char *nodes, char *payload, size_t room)
{
	struct text text = {payload, payload + room};
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	put(&text, "{\"v\":1,\"event\":\"%s\",\"job\":\"%" PRIu32 "\"", m->event, m->job);
	if (m->user >= 0)
		put(&text, ",\"user\":%" PRId64, m->user);
	put_string(&text, "nodes", nodes);
	put_string(&text, "traffic", m->traffic);
	put_string(&text, "subscriber", m->subscriber);
	put_string(&text, "phase", m->phase);
	if (m->subscriber)
		put(&text, ",\"update\":%" PRIu64 ",\"offset\":%u", m->update, m->offset);
	put_string(&text, "tasks", m->tasks);
	for (size_t i = 0; i < 2 * m->pair_count; i++)
		put(&text, "%s%d", i ? "," : ",\"pairs\":[", m->pairs[i]);
	put(&text, "%s", m->pair_count ? "]" : "");
	put(&text, ",\"at\":%lld.%03ld,\"id\":\"%s\"}", (long long)now.tv_sec, now.tv_nsec / 1000000, m->id);
	return text.at ? (size_t)(text.at - payload) : 0;
}

size_t message_encode(const struct message *m, char *payload, size_t room)
{
	const size_t length = encode(m, m->nodes, payload, room);

	return length ? length : encode(m, NULL, payload, room);
}
