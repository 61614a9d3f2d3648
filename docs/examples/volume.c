/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A volume over the donors that are named, with two copies of everything if there are two or more.
 * Kill one of the donors while it runs: it goes on.
 */
#include <string.h>

#include "example.h"

#define BYTES (4u << 20)

int main(int argc, char **argv)
{
	struct weir_volume_options options = {
		.size = sizeof(options),
		.donors = (const char *const *)(argv + 1),
		.nr_donors = (unsigned int)argc - 1,
		.bytes = BYTES,
	};
	const char text[] = "over many weirs";
	struct weir_volume_info info;
	struct weir_volume *volume;
	struct weir_error error;
	char got[sizeof(text)];

	if (weir_volume_open(&options, &volume, &error)) {
		fprintf(stderr, "%s\n", error.text);
		return 1;
	}
	for (uint64_t at = 1000; at < BYTES; at += 65536) /* any offset, any length */
		check(weir_volume_write(volume, at, text, sizeof(text)), "write");
	for (uint64_t at = 1000; at < BYTES; at += 65536) {
		check(weir_volume_read(volume, at, got, sizeof(got)), "read");
		if (memcmp(got, text, sizeof(text)))
			return 1;
	}
	check(weir_volume_info(volume, &info, sizeof(info)), "ask");
	printf("success: %s\n", got);
	printf("%u of %u pieces have all copies\n", info.whole, info.extents);
	weir_volume_close(volume);
	return 0;
}
