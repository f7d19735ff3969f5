/* The reader, given damaged files: each byte flipped, each truncation, and broken rules with valid checksums. Built with
 * ASan and UBSan, so this also checks that the reader does not read out of bounds. */
#include <stdbool.h>
#include <unistd.h>

#include "check.h"
#include "small.h"

static struct routes *reread(const uint8_t *image, size_t size, struct reason *why)
{
	uint8_t *copy = malloc(size ? size : 1);

	if (!copy)
		abort();
	memcpy(copy, image, size);
	return routes_from_image(copy, size, why);
}

static void good_files_are_read(void)
{
	for (unsigned lanes = 1; lanes <= 3; lanes += 2)
		for (unsigned offsets = 1; offsets <= 3; offsets++) {
			struct routes *made = small_routes(offsets, lanes);
			struct reason why = {.text = ""};
			struct routes *read = reread(made->image, made->size, &why);

			CHECK(read, "%s", why.text);
			CHECK(read && read->generation == 7 && !strcmp(read->engine, "sar"), "header");
			CHECK(read && !memcmp(read->image, made->image, made->size), "content");
			CHECK(read && read->columns == 7 && read->lanes == lanes, "sizes");
			routes_drop(read);
			routes_drop(made);
		}
}

/* With 3 lanes, the lanes are chosen hop by hop; with 5, the file has numbers. */
static struct routes *with_lanes(unsigned lanes)
{
	if (lanes == 5)
		return small_numbered(2, 2);
	if (lanes == 4) { /* a dump with unconfirmed entries */
		struct routes *r = small_copy(small_routes(2, 1), ROUTES_HAD, 1);

		memcpy(ROUTES_FILL(uint8_t, r->had), r->forwarding, (size_t)2 * 3 * r->columns);
		ROUTES_FILL(uint8_t, r->had)[3] = ROUTES_UNKNOWN;
		routes_seal(r);
		return r;
	}
	return lanes == 3 ? small_hop_routes(2) : small_routes(2, lanes);
}

static void lanes_hop_by_hop_are_read(void)
{
	struct routes *made = small_hop_routes(1);
	struct reason why = {.text = ""};
	struct routes *read = reread(made->image, made->size, &why);

	CHECK(read && read->hop_lanes && read->wide == 5 && !read->service_levels, "%s", why.text);
	CHECK(read && routes_hop_lane(read, 1, 4, 3) == 1 && !routes_hop_lane(read, 1, 3, 4), "lanes");
	CHECK(read && !routes_hop_lane(read, 1, 9, 3) && !routes_hop_lane(read, 1, 4, 9), "far ports");
	CHECK(read && read->far_ends[2 * 5 + 3] == (0 << 8 | 4), "far ends");
	routes_drop(read);
	routes_drop(made);
}

static void numbers_are_read(void)
{
	struct routes *made = small_numbered(1, 2);
	struct reason why = {.text = ""};
	struct routes *read = reread(made->image, made->size, &why);

	CHECK(read && read->numbers && read->loads && read->service_levels, "%s", why.text);
	CHECK(read && read->numbers[(SMALL_SWITCHES + 2) * 5 + 3] == 1 && !read->numbers[(SMALL_SWITCHES + 2) * 5 + 1], "numbers");
	CHECK(read && read->loads[2 * 5 + 4] == ROUTES_MOST_LOAD && !read->loads[2 * 5], "loads");
	routes_drop(read);
	routes_drop(made);
}

static void damage_is_seen(unsigned lanes)
{
	struct routes *made = with_lanes(lanes);
	struct reason why;

	for (size_t at = 0; at < made->size; at++)
		for (int bit = 0; bit < 8; bit++) {
			made->image[at] ^= (uint8_t)(1 << bit);
			CHECK(!reread(made->image, made->size, &why), "byte %zu bit %d", at, bit);
			made->image[at] ^= (uint8_t)(1 << bit);
		}
	for (size_t size = 0; size < made->size; size++)
		CHECK(!reread(made->image, size, &why), "first %zu bytes", size);
	routes_drop(made);
}

/* With corrected checksums, a change is either harmless or refused, and never crashes the reader. */
static void lies_do_not_crash(unsigned lanes)
{
	struct routes *made = with_lanes(lanes);
	unsigned accepted = 0;

	for (size_t at = 0; at < made->size; at++)
		for (int value = 0; value < 256; value += 3) {
			const uint8_t old = made->image[at];
			struct routes *read;
			struct reason why;

			made->image[at] = (uint8_t)value;
			routes_seal(made);
			read = reread(made->image, made->size, &why);
			accepted += read != NULL;
			routes_drop(read);
			made->image[at] = old;
		}
	CHECK(accepted > 0, "the digest and the date may be anything");
	routes_drop(made);
}

static void refuses(struct routes *r, const char *expected)
{
	struct reason why = {.text = ""};
	struct routes *read;

	routes_seal(r);
	read = reread(r->image, r->size, &why);
	CHECK(!read && strstr(why.text, expected), "\"%s\" instead of \"%s\"", why.text, expected);
	routes_drop(read);
	routes_drop(r);
}

static bool reads(struct routes *r)
{
	struct reason why;
	struct routes *read = reread(r->image, r->size, &why);
	const bool good = read != NULL;

	routes_drop(read);
	routes_drop(r);
	return good;
}

static void broken_rules_are_named(void)
{
	struct routes *r = small_routes(1, 1);

	*small_entry(r, 0, 0, 3) = 5;
	refuses(r, "port 5, but the highest is 4");
	r = small_routes(1, 1);
	*small_entry(r, 0, 0, 3) = 0;
	refuses(r, "port 0");
	r = small_routes(1, 1);
	*small_entry(r, 0, 1, SMALL_TERMINALS + 1) = 255;
	refuses(r, "port 0");
	r = small_routes(1, 1);
	ROUTES_FILL(uint64_t, r->switch_guid)[1] = 0x100;
	refuses(r, "switch GUIDs");
	r = small_routes(1, 1);
	ROUTES_FILL(uint32_t, r->terminal_leaf)[0] = 3;
	refuses(r, "leaf switch");
	r = small_routes(1, 2);
	ROUTES_FILL(uint8_t, r->service_levels)[0] = 16;
	refuses(r, "service level");
	r = small_routes(1, 2);
	ROUTES_FILL(uint8_t, r->sl_to_vl)[0] = 2;
	refuses(r, "unused lane");
	r = small_routes(1, 2);
	ROUTES_FILL(uint8_t, r->sl_to_vl)[3] = ROUTES_DROPPED;
	routes_seal(r);
	CHECK(reads(r), "a level may be dropped");
	r = small_hop_routes(1);
	ROUTES_FILL(uint8_t, r->hop_lanes)[7] = 2;
	refuses(r, "unused lane hop by hop");
	for (unsigned bad = 0; bad < 3; bad++) {
		r = small_hop_routes(1);
		ROUTES_FILL(uint32_t, r->far_ends)[3] = (const uint32_t[]){3 << 8 | 1, 0, 5}[bad];
		refuses(r, "far end");
		r = small_routes(1, 1);
		ROUTES_FILL(uint32_t, r->far_ends)[3] = (const uint32_t[]){1 << 8 | 3, 2 << 8 | 1, ROUTES_NO_SWITCH}[bad];
		refuses(r, "not the other way round");
	}
	r = small_hop_routes(1);
	r->image[41] = 1;
	refuses(r, "1 virtual lanes");
	r = small_hop_routes(1);
	r->image[8] = 2;
	refuses(r, "format version 2, this plugin reads 4");
	r = small_hop_routes(1);
	r->image[44] = 0;
	refuses(r, "8 sections for 2 virtual lanes");
	r = small_routes(1, 1);
	r->image[44] = 8;
	refuses(r, "unknown flags 0x8");
	r = small_routes(1, 1);
	r->image[44] = 4;
	refuses(r, "7 sections for 1 virtual lanes");
	r = small_numbered(1, 1);
	ROUTES_FILL(uint32_t, r->loads)[3] = ROUTES_MOST_LOAD + 1;
	refuses(r, "a load above 65536");
	r = small_routes(1, 1);
	ROUTES_FILL(uint8_t, r->senders)[1] = 2;
	refuses(r, "senders");
	r = with_lanes(4);
	ROUTES_FILL(uint8_t, r->had)[2] = 5;
	refuses(r, "port 5, but the highest is 4");
	r = with_lanes(4);
	ROUTES_FILL(uint8_t, r->had)[4] = 1;
	refuses(r, "port 0");
	r = small_routes(1, 1);
	r->image[24] = 0;
	refuses(r, "generation 0");
	r = small_routes(1, 1);
	r->image[80] = '"';
	refuses(r, "engine name");
}

static void writing_replaces_in_one_step(void)
{
	char folder[] = "/tmp/sar-test-XXXXXX", path[64];
	struct routes *made = small_routes(1, 1), *read;
	struct reason why = {.text = ""};

	CHECK(mkdtemp(folder), "mkdtemp");
	snprintf(path, sizeof(path), "%s/routes.sar", folder);
	CHECK(!routes_read(path, &why) && strstr(why.text, "No such file"), "%s", why.text);
	CHECK(routes_write(made, path, &why), "%s", why.text);
	read = routes_read(path, &why);
	CHECK(read, "%s", why.text);
	CHECK(!routes_read(folder, &why), "a folder is no file");
	routes_drop(read);
	routes_drop(made);
	unlink(path);
	CHECK(!rmdir(folder), "nothing else is left in the folder");
}

int main(void)
{
	good_files_are_read();
	lanes_hop_by_hop_are_read();
	numbers_are_read();
	for (unsigned lanes = 1; lanes <= 5; lanes++) {
		damage_is_seen(lanes);
		lies_do_not_crash(lanes);
	}
	broken_rules_are_named();
	writing_replaces_in_one_step();
	return checked("routes file");
}
