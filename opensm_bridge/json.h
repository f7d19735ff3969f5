/* One JSON object, written member by member into a buffer. What no longer fits is cut off. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json {
	char *text;
	size_t room, length;
};

/* `from` with every byte but printable ASCII escaped; returns `to`. */
const char *json_escaped(char *to, size_t room, const char *from);

void json_text(struct json *to, const char *name, const char *value);
void json_number(struct json *to, const char *name, uintmax_t value);
void json_real(struct json *to, const char *name, double value);
void json_truth(struct json *to, const char *name, bool value);
void json_end(struct json *to);
