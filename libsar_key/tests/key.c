/* A key for a phase, from C: key PHASE PATTERN | key PHASE FROM TO … | key --done PHASE. For live tests. */
#include "../sar_key.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int count, char **words)
{
	int pairs[64][2];
	size_t many = 0;
	struct sar_key key;
	enum sar_key_result result;

	if (count < 3)
		return 2;
	if (!strcmp(words[1], "--done"))
		return sar_key_done(words[2], 2000) ? 1 : 0;
	for (int i = 2; count > 3 && i + 1 < count && many < 64; i += 2, many++) {
		pairs[many][0] = atoi(words[i]);
		pairs[many][1] = atoi(words[i + 1]);
	}
	result = many ? sar_key_request_pairs(&key, words[1], (const int (*)[2])pairs, many, 10000)
		      : sar_key_request(&key, words[1], words[2], 10000);
	printf("%d %u %u %u %s\n", result, key.offset, key.own, key.total, key.sentence);
	return 0;
}
