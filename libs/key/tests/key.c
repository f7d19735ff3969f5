/* For live tests: requests a routing key. key PHASE PATTERN | key PHASE FROM TO … | key --done PHASE */
#include "../sar_key.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
	int pairs[64][2];
	size_t count = 0;
	struct sar_key key;
	enum sar_key_result result;

	if (argc < 3)
		return 2;
	if (!strcmp(argv[1], "--done"))
		return sar_key_done(argv[2], 2000) ? 1 : 0;
	for (int i = 2; argc > 3 && i + 1 < argc && count < 64; i += 2, count++) {
		pairs[count][0] = atoi(argv[i]);
		pairs[count][1] = atoi(argv[i + 1]);
	}
	result = count ? sar_key_request_pairs(&key, argv[1], (const int (*)[2])pairs, count, 10000)
		      : sar_key_request(&key, argv[1], argv[2], 10000);
	printf("%d %u %u %u %s\n", result, key.offset, key.own, key.total, key.sentence);
	return 0;
}
