/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Regions have names. One client creates a region, and another opens it by name. While a client
 * holds a region exclusively, no other client can open it.
 */
#include "example.h"

static void print_entry(void *arg, const struct weir_region_entry *entry)
{
	(void)arg;
	printf("%s: %llu bytes, held by %u\n", entry->name, (unsigned long long)entry->length,
	       entry->holders);
}

int main(int argc, char **argv)
{
	struct weir_session *maker = example_session(argc, argv, NULL);
	struct weir_session *user = example_session(argc, argv, NULL);
	struct weir_region *made, *opened, *alone;
	struct weir_error error;
	char text[8] = "";

	check(weir_region_create(maker, "blackboard", 65536, 0, &made, NULL), "create");
	check(weir_region_open(user, "blackboard", WEIR_REGION_READ_ONLY, &opened, NULL), "open");
	check(weir_region_list(user, print_entry, NULL), "list");

	check(weir_write(made, 0, "chalk", 6), "write");
	check(weir_read(opened, 0, text, 6), "read");
	printf("the other client reads '%s', and may not write: %s\n", text,
	       weir_strerror(weir_write(opened, 0, "sponge", 7)));
	if (weir_region_open(user, "blackboard", WEIR_REGION_EXCLUSIVE, &alone, &error))
		printf("%s\n", error.text);

	weir_region_close(opened);
	weir_region_close(made);
	check(weir_region_delete(maker, "blackboard", NULL), "delete");
	weir_session_close(user);
	weir_session_close(maker);
	return 0;
}
