/* For tests/property/test_traffic.py: prints 1 for each line of standard input that is a traffic pattern, else 0. */
#include "../traffic.h"

#include <string.h>

int main(int argc, char **argv)
{
	char line[4096];

	(void)argv;
	if (argc > 1) {
		traffic_help(stdout);
		return 0;
	}
	while (fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, "\n")] = '\0';
		puts(traffic_known(line) ? "1" : "0");
	}
	return 0;
}
