/*
 * The writer of the fabric file. With a path and the width of a tree as arguments, this program writes the file of a large
 * fabric there, for tests of the Python reader and for measurements.
 */
#include "../fabric_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../crc32.h"
#include "check.h"

static uint64_t number(const uint8_t *image, size_t at, unsigned bytes)
{
	uint64_t value = 0;

	while (bytes--)
		value = value << 8 | image[at + bytes];
	return value;
}

/* One switch with one host, whose name has bytes of every kind. */
static struct fabric_file small(void)
{
	static const char name[] = {'n', '"', '\xff', '\n', '\x01', ' '};
	struct fabric_file f = {.nodes = 2, .ports = 4, .links = 1, .name_bytes = sizeof(name) + 2,
				.made_at = 77};

	if (!fabric_file_blank(&f))
		abort();
	f.node_guid[0] = 0x0123456789abcdef;
	f.node_guid[1] = 0xfedcba9876543210;
	f.node_type[0] = FABRIC_CA;
	f.node_type[1] = FABRIC_SWITCH;
	f.node_ports[0] = 1;
	f.node_ports[1] = 2;
	f.name_length[0] = sizeof(name);
	f.name_length[1] = 2;
	memcpy(f.names, name, sizeof(name));
	memcpy(f.names + sizeof(name), "s1", 2);
	for (uint32_t p = 0; p < f.ports; p++) {
		f.port_node[p] = p ? 1 : 0;
		f.port_number[p] = p ? (uint8_t)(p - 1) : 1;
		f.port_guid[p] = f.node_guid[f.port_node[p]] + !p;
		f.port_lid[p] = p < 2 ? (uint16_t)(0x1234 + p) : 0;
		f.port_state[p] = 4;
		f.port_width[p] = 4;
		f.port_speed[p] = HDR;
	}
	f.port_lmc[0] = 2;
	f.link_from[0] = 0;
	f.link_to[0] = 2;
	fabric_file_seal(&f);
	return f;
}

static void every_byte_is_where_the_format_says(void)
{
	struct fabric_file f = small();
	const uint8_t *h = f.image;
	const size_t guids = 64, ports = guids + 16, nodes = ports + 32, from = nodes + 16, lids = from + 8;
	const size_t bytes = lids + 8;

	CHECK(f.size == 64 + 11 * 2 + 19 * 4 + 8 + 8, "%zu bytes", f.size);
	CHECK(!memcmp(h, "SARFABRI", 8), "magic");
	CHECK(number(h, 8, 4) == 1 && number(h, 12, 4) == 64 && number(h, 16, 8) == f.size, "sizes");
	CHECK(number(h, 24, 4) == 2 && number(h, 28, 4) == 4 && number(h, 32, 4) == 1, "counts");
	CHECK(number(h, 36, 4) == 8 && number(h, 40, 8) == 77, "names, time");
	CHECK(number(h, 48, 8) == f.digest && f.digest, "digest");
	CHECK(number(h, 56, 4) == sar_crc32(0, h + 64, f.size - 64), "checksum of the payload");
	CHECK(number(h, 60, 4) == sar_crc32(0, h, 60), "checksum of the header");
	CHECK(number(h, guids + 8, 8) == 0xfedcba9876543210, "the second node's GUID");
	CHECK(number(h, ports, 8) == 0x0123456789abcdf0, "the first port's GUID");
	CHECK(number(h, nodes + 4, 4) == 1, "the second port's node");
	CHECK(number(h, from, 4) == 0 && number(h, from + 4, 4) == 2, "the link's ends");
	CHECK(number(h, lids, 2) == 0x1234 && number(h, lids + 2, 2) == 0x1235, "LIDs");
	CHECK(h[bytes] == FABRIC_CA && h[bytes + 1] == FABRIC_SWITCH, "types");
	CHECK(h[bytes + 2] == 1 && h[bytes + 3] == 2, "numbers of ports");
	CHECK(h[bytes + 4] == 6 && h[bytes + 5] == 2, "lengths of names");
	CHECK(h[bytes + 6] == 1 && h[bytes + 7] == 0 && h[bytes + 9] == 2, "port numbers");
	CHECK(h[bytes + 10] == 2, "LMC");
	CHECK(h[bytes + 14] == 4 && h[bytes + 18] == 4 && h[bytes + 22] == HDR, "state, width, speed");
	CHECK(!memcmp(h + bytes + 26, "n\"\xff\n\x01 s1", 8), "names");
	fabric_file_free(&f);
}

static void the_digest_is_of_the_fabric_alone(void)
{
	struct fabric_file f = small();
	const uint64_t digest = f.digest;

	f.made_at++;
	fabric_file_seal(&f);
	CHECK(f.digest == digest, "the time is no part of it");
	for (size_t at = FABRIC_HEADER_SIZE; at < f.size; at++) {
		f.image[at] ^= 1;
		fabric_file_seal(&f);
		CHECK(f.digest != digest, "byte %zu is no part of it", at);
		f.image[at] ^= 1;
	}
	fabric_file_free(&f);
}

static void a_file_is_replaced_as_a_whole(void)
{
	struct fabric_file f = small();
	char folder[] = "/tmp/sar-fabric-XXXXXX", path[64], image[256];
	struct reason why = {.text = ""};
	struct stat info = {0};
	ssize_t got = -1;
	int file;

	if (!mkdtemp(folder))
		abort();
	snprintf(path, sizeof(path), "%s/fabric.sar", folder);
	CHECK(fabric_file_write(&f, path, &why) && fabric_file_write(&f, path, &why), "%s", why.text);
	CHECK(!stat(path, &info) && (info.st_mode & 0777) == 0644, "mode %o", (unsigned)info.st_mode);
	file = open(path, O_RDONLY);
	if (file >= 0) {
		got = read(file, image, sizeof(image));
		close(file);
	}
	CHECK(got == (ssize_t)f.size && !memcmp(image, f.image, f.size), "%zd bytes", got);
	CHECK(!unlink(path) && !rmdir(folder), "nothing else is left in the folder");
	CHECK(!fabric_file_write(&f, path, &why) && strstr(why.text, "No such file"), "%s", why.text);
	fabric_file_free(&f);
}

static void an_empty_fabric_is_a_header(void)
{
	struct fabric_file f = {0};

	CHECK(fabric_file_blank(&f) && f.size == FABRIC_HEADER_SIZE, "%zu bytes", f.size);
	fabric_file_seal(&f);
	fabric_file_free(&f);
	fabric_file_free(&f);
}

/* `wide` leaf switches with `wide` hosts each, and as many spines. */
static bool write_large(const char *path, uint32_t wide)
{
	const uint32_t hosts = wide * wide, stride = 2 * wide + 1;
	struct fabric_file f = {.nodes = hosts + 2 * wide, .ports = hosts + 2 * wide * stride,
				.links = 2 * hosts, .name_bytes = 6 * (hosts + 2 * wide)};
	struct reason why = {.text = ""};
	bool good;

	if (!fabric_file_blank(&f))
		return false;
	for (uint32_t n = 0, p = 0; n < f.nodes; n++) {
		const bool host = n < hosts;
		char name[16];

		snprintf(name, sizeof(name), "%c%05u", host ? 'n' : 's', (unsigned)n);
		memcpy(f.names + 6 * n, name, 6);
		f.name_length[n] = 6;
		f.node_guid[n] = 0x1000 + 2 * n;
		f.node_type[n] = host ? FABRIC_CA : FABRIC_SWITCH;
		f.node_ports[n] = (uint8_t)(host ? 1 : 2 * wide);
		for (uint32_t number = host; number <= f.node_ports[n]; number++, p++) {
			f.port_node[p] = n;
			f.port_number[p] = (uint8_t)number;
			f.port_guid[p] = f.node_guid[n] + host;
			f.port_lid[p] = (uint16_t)(host || !number ? n + 1 : 0);
			f.port_state[p] = 4;
			f.port_width[p] = 4;
			f.port_speed[p] = EDR;
		}
	}
	for (uint32_t h = 0; h < hosts; h++) {
		const uint32_t leaf = h / wide, k = h % wide;

		f.link_from[h] = h;
		f.link_to[h] = hosts + leaf * stride + 1 + k;
		f.link_from[hosts + h] = hosts + leaf * stride + 1 + wide + k;
		f.link_to[hosts + h] = hosts + (wide + k) * stride + 1 + leaf;
	}
	fabric_file_seal(&f);
	good = fabric_file_write(&f, path, &why);
	fabric_file_free(&f);
	return good;
}

int main(int argc, char **argv)
{
	if (argc == 3)
		return write_large(argv[1], (uint32_t)atoi(argv[2])) ? EXIT_SUCCESS : EXIT_FAILURE;
	every_byte_is_where_the_format_says();
	the_digest_is_of_the_fabric_alone();
	a_file_is_replaced_as_a_whole();
	an_empty_fabric_is_a_header();
	return checked("fabric file");
}
