/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Data that the donor cannot read: sealed by a key that it does not know. Here the donor's
 * operator overwrites a block, and the client notices.
 */
#include <string.h>
#include <unistd.h>

#include "example.h"

#define BYTES (1u << 20)

static struct weir_key *new_key(void)
{
	char path[] = "/tmp/weir-example-XXXXXX", file[sizeof(path) + 4];
	struct weir_error error;
	struct weir_key *key;

	if (!mkdtemp(path))
		exit(1);
	snprintf(file, sizeof(file), "%s/key", path);
	if (weir_key_create(file, &error) || weir_key_load(file, &key, &error)) {
		fprintf(stderr, "%s\n", error.text);
		exit(1);
	}
	unlink(file);
	rmdir(path);
	return key;
}

int main(int argc, char **argv)
{
	struct weir_session *session = example_session(argc, argv, NULL);
	struct weir_sealed_options options = {
		.size = sizeof(options),
		.name = "diary", /* the same whenever this data is opened */
		.is_new = 1,
	};
	char got[32] = "", stored[32];
	struct weir_sealed *sealed;
	struct weir_region *region;
	struct weir_error error;
	struct weir_key *key = new_key();

	options.key = key;
	check(weir_region_create(session, NULL, weir_sealed_region_bytes(BYTES), 0, &region, NULL),
	      "create a region");
	if (weir_sealed_open(region, &options, &sealed, &error)) {
		fprintf(stderr, "%s\n", error.text);
		return 1;
	}
	check(weir_sealed_write(sealed, 0, "dear diary", 11, NULL), "write");
	check(weir_sealed_read(sealed, 0, got, 11, NULL), "read");
	check(weir_read(region, 0, stored, sizeof(stored)), "read what is stored");
	printf("success: %s\n", got);
	printf("the donor has %s\n",
	       memmem(stored, sizeof(stored), "dear", 4) ? "the text" : "other bytes");

	check(weir_write(region, 0, "dear donor", 11), "overwrite it");
	if (weir_sealed_read(sealed, 0, got, 11, &error))
		printf("%s\n", error.text);

	weir_sealed_close(sealed);
	weir_region_close(region);
	weir_key_free(key);
	weir_session_close(session);
	return 0;
}
