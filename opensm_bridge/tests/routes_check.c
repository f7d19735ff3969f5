/* routes_check FILE…: prints "FILE: ok …" or the reason for each file; exit code 1 if any is invalid. */
#include <inttypes.h>
#include <stdio.h>

#include "../routes_file.h"

int main(int count, char *arguments[])
{
	int bad = 0;

	for (int i = 1; i < count; i++) {
		struct reason why = {.text = ""};
		struct routes *r = routes_read(arguments[i], &why);

		if (r)
			printf("%s: ok generation %" PRIu64 " engine %s switches %u terminals %u "
			       "offsets %u lanes %u\n", arguments[i], r->generation, r->engine,
			       r->switches, r->terminals, r->offsets, r->lanes);
		else
			printf("%s: %s\n", arguments[i], why.text);
		bad |= !r;
		routes_drop(r);
	}
	return bad;
}
