/* The agent's answer: any bytes up to a NUL. Variables are whole lines, and a refusal sets none. */
#include <stdlib.h>
#include <string.h>

#include "../answer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);
	struct answer a;
	bool good;

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	good = answer_parse(&a, text);
	if (a.env.count > MOST_VARIABLES || (!good && (a.ok || a.env.count)))
		abort();
	for (unsigned i = 0; i < a.env.count; i++)
		if (!memchr(a.env.variable[i].name, 0, sizeof(a.env.variable[i].name)) || strchr(a.env.variable[i].value, '\n') ||
		    !memchr(a.env.variable[i].value, 0, sizeof(a.env.variable[i].value)))
			abort();
	free(text);
	return 0;
}
