/*
 * The differences that PerfMgr reports, and the writer of their file. With a path and a number of hosts as arguments, this
 * program writes the file of a large fabric there, for the Python reader's tests and for measurements.
 */
#include "../port_counters.h"

#include <time.h>

#include "../crc32.h"
#include "write_file.h"
#include "check.h"

#define GUID 0x0123456789abcdef

static uint64_t number(const uint8_t *image, size_t at, unsigned bytes)
{
	uint64_t value = 0;

	while (bytes--)
		value = value << 8 | image[at + bytes];
	return value;
}

static void add(struct port_counters *c, uint64_t guid, uint8_t port, uint64_t sent, int64_t seconds, uint64_t now)
{
	const struct counted_data data = {.guid = guid, .port = port, .sent = sent, .received = sent / 2,
					  .sent_packets = sent / 8, .received_packets = sent / 16, .seconds = seconds};

	CHECK(counters_add_data(c, &data, now), "no room for %#jx[%u]", (uintmax_t)guid, port);
}

static struct counted_port only(const struct port_counters *c)
{
	CHECK(c->used == 1, "%u ports", c->used);
	return **(struct counted_port *const *)c->ports; /* the root of a tree is a pointer to its key */
}

static void the_first_reading_is_no_difference(void)
{
	struct port_counters c = {.sweep_seconds = 2};

	add(&c, GUID, 1, 5000, 1, 1000);
	CHECK(!only(&c).flags && !only(&c).window, "flags %u", only(&c).flags);
	add(&c, GUID, 1, 700, 2, 3100);
	CHECK(only(&c).flags == COUNTED_DATA && only(&c).window == 2100, "window %u", only(&c).window);
	CHECK(only(&c).sent == 700 && only(&c).received == 350, "words");
	counters_free(&c);
}

static void a_counter_that_was_cleared_is_no_difference(void)
{
	struct port_counters c = {.sweep_seconds = 180};

	add(&c, GUID, 1, 5000, 180, 1000);
	add(&c, GUID, 1, 700, 180, 181000);
	CHECK(only(&c).window == 180000, "window %u", only(&c).window);
	add(&c, GUID, 1, 90000, 0, 361000); /* PerfMgr found it below the last reading */
	CHECK(!(only(&c).flags & COUNTED_DATA), "no window");
	add(&c, GUID, 1, 9, -1, 541000);
	CHECK(!(only(&c).flags & COUNTED_DATA), "a clock that was set back");
	add(&c, GUID, 1, 800, 1, 721000);
	CHECK(!(only(&c).flags & COUNTED_DATA), "much shorter than a sweep");
	add(&c, GUID, 1, 800, 170, 901000); /* PerfMgr cleared it after the last reading */
	CHECK(only(&c).window == 170000, "window %u", only(&c).window);
	counters_free(&c);
}

static void sweeps_are_numbered(void)
{
	struct port_counters c = {.sweep_seconds = 2};

	for (uint64_t sweep = 1; sweep <= 3; sweep++)
		for (uint8_t port = 1; port <= 36; port++) {
			add(&c, GUID, port, 100, 2, 2000 * sweep + port);
			CHECK(c.sweep == sweep, "sweep %u", c.sweep);
		}
	add(&c, GUID, 36, 100, 2, 6100); /* a late answer does not begin a sweep */
	CHECK(c.sweep == 3 && c.used == 36, "sweep %u, %u ports", c.sweep, c.used);
	counters_free(&c);
}

static void a_stuck_counter_is_reported(void)
{
	struct port_counters c = {.sweep_seconds = 2};
	uint64_t now = 0;

	add(&c, GUID, 1, 77, 0, now += 2000);
	add(&c, GUID, 1, UINT32_MAX - 100, 2, now += 2000);
	CHECK(!(only(&c).flags & COUNTED_STUCK), "within its range");
	add(&c, GUID, 1, UINT32_MAX, 2, now += 2000); /* PerfMgr had cleared it */
	CHECK(only(&c).flags & COUNTED_STUCK, "stuck");
	add(&c, GUID, 1, 1000, 2, now += 2000);
	add(&c, GUID, 1, UINT32_MAX - 1000, 2, now += 2000);
	CHECK(only(&c).flags & COUNTED_STUCK, "stuck from 1000 on");
	add(&c, GUID, 1, 1ull << 40, 2, now += 2000);
	add(&c, GUID, 1, UINT32_MAX, 2, now += 2000);
	CHECK(only(&c).flags == (COUNTED_DATA | COUNTED_WIDE), "a counter of 64 bits does not stick");
	counters_free(&c);
}

static void waits_have_their_own_window(void)
{
	struct port_counters c = {.sweep_seconds = 2};

	CHECK(counters_add_waits(&c, GUID, 1, 9, 0, 1000), "waits");
	add(&c, GUID, 1, 8, 0, 1001);
	CHECK(counters_add_waits(&c, GUID, 1, 11, 2, 3000), "waits");
	CHECK(only(&c).flags == COUNTED_WAITS && only(&c).waits == 11 && only(&c).wait_window == 2000, "waits");
	CHECK(!counters_add_waits(&c, 0, 1, 11, 2, 3000), "no node");
	counters_free(&c);
}

static void ports_that_are_not_read_any_more_are_left_out(void)
{
	struct port_counters c = {.sweep_seconds = 2};
	uint8_t *image;
	size_t size;

	add(&c, GUID, 1, 1, 2, 2000);
	for (uint64_t sweep = 1; sweep <= COUNTERS_FORGET + 2; sweep++) {
		add(&c, GUID, 2, 1, 2, 2000 * sweep);
		image = counters_image(&c, 2000 * sweep, 1, &size);
		CHECK(image && number(image, 24, 4) == (sweep <= COUNTERS_FORGET + 1 ? 2 : 1), "sweep %u", c.sweep);
		free(image);
	}
	counters_free(&c);
}

static void memory_is_bounded(void)
{
	struct port_counters c = {.sweep_seconds = 2};
	struct counted_data data = {.sent = 1, .seconds = 2, .port = 1};
	uint32_t refused = 0;

	add(&c, 7, 1, 1, 2, 2000);
	for (data.guid = 1; data.guid <= COUNTERS_MOST + 10; data.guid++)
		refused += !counters_add_data(&c, &data, 200000);
	CHECK(refused == 10 && c.dropped == refused && c.used == COUNTERS_MOST, "%u refused, %u ports", refused, c.used);
	data.guid = 7;
	CHECK(counters_add_data(&c, &data, 300000), "a known port always has room");
	counters_free(&c);
	counters_free(&c);
}

static void every_byte_is_where_the_format_says(void)
{
	struct port_counters c = {.sweep_seconds = 2};
	uint8_t *image;
	size_t size;

	add(&c, GUID, 2, 1600, 2, 1000);
	add(&c, 5, 1, 1600, 2, 1000);
	add(&c, GUID, 2, 3200, 2, 3000);
	CHECK(counters_add_waits(&c, 5, 1, 6, 2, 1000) && counters_add_waits(&c, 5, 1, 7, 2, 2900), "waits");
	if (!(image = counters_image(&c, 3500, 123456, &size)))
		abort();
	CHECK(size == 64 + 66 * 2, "%zu bytes", size);
	CHECK(!memcmp(image, "SARCOUNT", 8), "magic");
	CHECK(number(image, 8, 4) == 1 && number(image, 12, 4) == 64 && number(image, 16, 8) == size, "sizes");
	CHECK(number(image, 24, 4) == 2 && number(image, 28, 4) == 2 && number(image, 32, 4) == 2, "counts");
	CHECK(!number(image, 36, 4) && number(image, 40, 8) == 123456 && !number(image, 48, 8), "time");
	CHECK(number(image, 56, 4) == sar_crc32(0, image + 64, size - 64), "checksum of the payload");
	CHECK(number(image, 60, 4) == sar_crc32(0, image, 60), "checksum of the header");
	CHECK(number(image, 64, 8) == 5 && number(image, 72, 8) == GUID, "GUIDs");
	CHECK(number(image, 88, 8) == 3200 && number(image, 104, 8) == 1600, "words");
	CHECK(number(image, 120, 8) == 400 && number(image, 136, 8) == 200, "packets");
	CHECK(number(image, 144, 8) == 7 && !number(image, 152, 8), "waits");
	CHECK(number(image, 160, 4) == 2500 && number(image, 164, 4) == 500, "ages");
	CHECK(!number(image, 168, 4) && number(image, 172, 4) == 2000, "windows");
	CHECK(number(image, 176, 4) == 1900 && !number(image, 180, 4), "windows of waits");
	CHECK(number(image, 184, 4) == 1 && number(image, 188, 4) == 2, "sweeps");
	CHECK(image[192] == 1 && image[193] == 2, "ports");
	CHECK(image[194] == COUNTED_WAITS && image[195] == COUNTED_DATA, "flags");
	free(image);
	counters_free(&c);
}

static void nothing_read_is_a_header(void)
{
	struct port_counters c = {0};
	size_t size = 0;
	uint8_t *image;

	if (!(image = counters_image(&c, 1, 1, &size)))
		abort();
	CHECK(size == COUNTERS_HEADER_SIZE, "%zu bytes", size);
	free(image);
}

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* `hosts` with a port each and 5/36 as many switches of 36 ports, as in a full tree of three levels; prints the cost of a sweep. */
static bool write_large(const char *path, uint64_t hosts)
{
	const uint64_t switches = hosts * 5 / 36;
	struct port_counters c = {.sweep_seconds = 180};
	struct reason why = {.text = ""};
	double begin = 0, swept = 0;
	uint8_t *image = NULL;
	size_t size;
	bool good;

	for (uint64_t sweep = 1; sweep <= 3; sweep++) {
		begin = seconds();
		for (uint64_t h = 1; h <= hosts; h++)
			add(&c, (1ull << 40) + h, 1, 1000 * h, 180, 180000 * sweep);
		for (uint64_t s = 1; s <= switches; s++)
			for (uint8_t p = 1; p <= 36; p++) {
				add(&c, s, p, 1000 * s + p, 180, 180000 * sweep);
				counters_add_waits(&c, s, p, s, 180, 180000 * sweep);
			}
		swept = seconds() - begin;
	}
	begin = seconds();
	good = (image = counters_image(&c, 541000, 1700000000000, &size)) &&
	       write_file(path, image, size, &why);
	printf("%u ports: %.4f s for the reports of a sweep, %.4f s for a file of %zu bytes\n", c.used,
	       swept, seconds() - begin, size);
	free(image);
	counters_free(&c);
	return good;
}

int main(int argc, char **argv)
{
	if (argc == 3)
		return !write_large(argv[1], strtoull(argv[2], NULL, 10));
	the_first_reading_is_no_difference();
	a_counter_that_was_cleared_is_no_difference();
	sweeps_are_numbered();
	a_stuck_counter_is_reported();
	waits_have_their_own_window();
	ports_that_are_not_read_any_more_are_left_out();
	memory_is_bounded();
	every_byte_is_where_the_format_says();
	nothing_read_is_a_header();
	return checked("port counters");
}
