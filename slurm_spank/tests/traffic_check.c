/* Each line of standard input: 1 if it is a traffic pattern, 0 if not; for tests/property/test_traffic.py. */
#include "../traffic.h"

#include <string.h>

int main(int count, char **words)
{
	char line[4096];

	(void)words;
	if (count > 1) {
		traffic_help(stdout);
		return 0;
	}
	while (fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, "\n")] = '\0';
		puts(traffic_known(line) ? "1" : "0");
	}
	return 0;
}
