/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Reads a whole file of lengths into memory and checks each line. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/load/sizes.h"

#define LINE_BYTES 64
#define BYTES_MAX (1u << 24)

static int read_all(struct sim_sizes *sizes, FILE *file, const char *path, char *why,
		    uint32_t why_bytes)
{
	char line[LINE_BYTES], end;
	unsigned long number = 0;
	uint32_t bytes;

	while (fgets(line, sizeof(line), file)) {
		number++;
		if (*line == '#')
			continue;
		if (sscanf(line, "%u %c", &bytes, &end) != 1 || !bytes || bytes > BYTES_MAX ||
		    sizes->count == SIM_SIZES_MAX) {
			snprintf(why, why_bytes, "%s:%lu: expected a number of bytes, 1 to %u",
				 path, number, BYTES_MAX);
			return -EINVAL;
		}
		sizes->bytes[sizes->count++] = bytes;
		if (bytes > sizes->most)
			sizes->most = bytes;
	}
	if (!sizes->count)
		snprintf(why, why_bytes, "%s: there is no length in it", path);
	return sizes->count ? 0 : -EINVAL;
}

int sim_sizes_load(struct sim_sizes *sizes, const char *path, char *why, uint32_t why_bytes)
{
	FILE *file = fopen(path, "r");
	int rc;

	*sizes = (struct sim_sizes){ .bytes = calloc(SIM_SIZES_MAX, sizeof(*sizes->bytes)) };
	if (!file || !sizes->bytes) {
		snprintf(why, why_bytes, "%s: %s", path, strerror(errno));
		rc = -EINVAL;
	} else {
		rc = read_all(sizes, file, path, why, why_bytes);
	}
	if (file)
		fclose(file);
	if (rc)
		sim_sizes_fini(sizes);
	return rc;
}

void sim_sizes_fini(struct sim_sizes *sizes)
{
	free(sizes->bytes);
	*sizes = (struct sim_sizes){ .count = 0 };
}
