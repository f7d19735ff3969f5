/* What is known of switches whose answers are missing, and the digest of it. */
#include "../known.h"

#include "check.h"
#include "small.h"

static struct known k;

/* For one switch and one LID: the entry that was sent, and the one that the switch may have instead. */
static void expect(uint8_t sent, uint8_t had, const char *when)
{
	CHECK(k.sw[0].sent[5] == sent && k.sw[0].had[5] == had, "%s: %u, or %u", when,
	      k.sw[0].sent[5], k.sw[0].had[5]);
}

static void sent(uint8_t port)
{
	known_sent(&k.sw[0], 5, &port, 1);
}

static void answers_that_are_missing(void)
{
	const uint64_t guid = 0x100;
	const uint8_t three = 3;

	CHECK(known_resize(&k, &guid, 1, 10), "memory");
	expect(255, ENTRY_UNKNOWN, "at the start");
	sent(1);
	expect(1, ENTRY_UNKNOWN, "what it had before is not known");
	known_confirmed(&k, &k.sw[0], 5, &three, 1);
	expect(3, 3, "confirmed");
	sent(3);
	expect(3, 3, "the same again");
	sent(4);
	expect(4, 3, "old or new");
	sent(4);
	expect(4, 3, "asking twice for one change");
	sent(3);
	expect(3, 4, "and back");
	sent(255);
	expect(255, ENTRY_UNKNOWN, "three possibilities");
	known_confirmed(&k, &k.sw[0], 5, &three, 1);
	sent(4);
	known_lost(&k.sw[0], 0, k.lids);
	expect(255, ENTRY_UNKNOWN, "a reset");
}

/* The entries that packets to LID 5 may have followed, as a text. */
static const char *older(void)
{
	static char text[64];
	int length = 0;

	for (int i = 0; i < OLDERS; i++)
		length += snprintf(text + length, sizeof(text) - (size_t)length, " %u", k.sw[0].older[OLDERS * 5 + i]);
	return text + 1;
}

static void confirmed(uint8_t port)
{
	known_confirmed(&k, &k.sw[0], 5, &port, 1);
}

/* Packets may be on their way by what was replaced, until they are gone. */
static void older_entries(void)
{
	const uint64_t guid = 0x100;
	const uint8_t one = 1;

	known_free(&k);
	CHECK(known_resize(&k, &guid, 1, 10), "memory");
	k.last = 5;
	for (uint32_t lid = 0; lid <= 5; lid++)
		known_confirmed(&k, &k.sw[0], lid, &one, 1);
	CHECK(!k.ages && known_all_settled(&k) && k.begun, "a switch that comes up has sent nothing");
	sent(2);
	CHECK(!known_is_settled(&k, 0) && !k.ages, "not confirmed yet");
	confirmed(2);
	CHECK(k.ages && !known_is_settled(&k, 0) && !strcmp(older(), "1 255 255"), "by the first: %s", older());
	confirmed(1);
	CHECK(!strcmp(older(), "2 255 255"), "by the second: %s", older());
	confirmed(3);
	confirmed(4);
	CHECK(!strcmp(older(), "2 1 3"), "by any of three: %s", older());
	confirmed(3);
	CHECK(!strcmp(older(), "2 1 4"), "what it has again is not older: %s", older());
	confirmed(5);
	CHECK(!strcmp(older(), "2 1 254"), "by more than can be told apart: %s", older());
	known_forget_older(&k);
	CHECK(!k.ages && known_all_settled(&k) && !strcmp(older(), "255 255 255"), "they are gone: %s", older());
	sent(2);
	confirmed(5);
	CHECK(!strcmp(older(), "2 255 255"), "what it kept is not older: %s", older());
}

static void sizes_change(void)
{
	const uint64_t both[] = {0x100, 0x200}, last[] = {0x200};
	const uint8_t one[KNOWN_BLOCK] = {1};
	uint32_t switches, blocks;

	CHECK(known_resize(&k, both, 2, 100), "memory");
	known_confirmed(&k, &k.sw[1], 0, one, KNOWN_BLOCK);
	CHECK(known_resize(&k, last, 1, 10) && k.lids == 128, "%u LIDs", k.lids);
	CHECK(k.sw[0].guid == 0x200 && k.sw[0].sent[0] == 1 && k.sw[0].had[0] == 1, "kept");
	(k.last = 63, known_count(&k, &switches, &blocks));
	CHECK(!switches && !blocks, "the first block is confirmed");
	(k.last = 64, known_count(&k, &switches, &blocks));
	CHECK(switches == 1 && blocks == 1, "the second is not");
	CHECK(known_resize(&k, both, 2, 10), "memory");
	(k.last = 127, known_count(&k, &switches, &blocks));
	CHECK(switches == 2 && blocks == 3, "%u switches, %u blocks", switches, blocks);
	CHECK(k.sw[0].had[0] == ENTRY_UNKNOWN, "one that came back is not known");
}

static uint64_t digest(const struct small *f)
{
	return known_digest(&k, &f->live, 1);
}

static void the_digest_sees_every_change(void)
{
	const uint64_t guids[] = {0x100, 0x101, 0x102};
	uint8_t table[KNOWN_BLOCK];
	struct small f;
	struct live_terminal other;
	uint64_t before;

	small_fabric(&f);
	CHECK(known_resize(&k, guids, 3, 10), "memory");
	for (int s = 0; s < 3; s++) {
		memset(table, s + 1, sizeof(table));
		known_confirmed(&k, &k.sw[s], 0, table, sizeof(table));
	}
	before = digest(&f);
	CHECK(digest(&f) == before, "the same");
	other = f.end[0], f.end[0] = f.end[1], f.end[1] = other;
	CHECK(digest(&f) == before, "the order of hosts means nothing");
	k.sw[1].sent[40] = k.sw[1].had[40] = 9;
	CHECK(digest(&f) == before, "nor does an entry of a LID that nobody has");
	k.sw[1].had[10] = 9;
	CHECK(digest(&f) != before, "an entry that is not confirmed");
	k.sw[1].sent[10] = 9;
	CHECK(digest(&f) != before, "another entry");
	k.sw[1].sent[10] = k.sw[1].had[10] = 2;
	CHECK(digest(&f) == before, "as it was");
	/* OpenSM gives two hosts each other's LID: not one entry changes. */
	f.end[0].lid_low = f.end[0].lid_high = f.end[1].lid_low;
	f.end[1].lid_low = f.end[1].lid_high = other.lid_low == f.end[0].lid_low ? 11 : 10;
	CHECK(digest(&f) != before, "LIDs that were given to other ports");
	CHECK(known_digest(&k, &f.live, 2) != digest(&f), "what the seed stands for");
}

int main(void)
{
	answers_that_are_missing();
	older_entries();
	sizes_change();
	the_digest_sees_every_change();
	known_free(&k);
	return checked("known");
}
