/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Many writes under way at once, with a callback when each is done, straight from memory
 * that was registered once.
 */
#include <string.h>
#include "example.h"

#define WRITES 256
#define BYTES 4096

struct progress {
	int done; /* callbacks may run in any thread */
	int failed;
};

static void write_done(void *arg, int status)
{
	struct progress *progress = arg;

	if (status)
		__atomic_fetch_add(&progress->failed, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&progress->done, 1, __ATOMIC_RELEASE);
}

int main(int argc, char **argv)
{
	struct weir_session *session = example_session(argc, argv, NULL);
	struct weir_region *region = example_region(session);
	struct progress progress = { 0 };
	struct weir_completion completion = { .done = write_done, .arg = &progress };
	struct weir_memory *memory;
	char *bytes = malloc(WRITES * BYTES);
	int i;

	memset(bytes, 'w', WRITES * BYTES);
	check(weir_memory_register(session, bytes, WRITES * BYTES, &memory, NULL), "register");
	for (i = 0; i < WRITES; i++) {
		struct weir_iov iov = { bytes + i * BYTES, BYTES, memory };

		check(weir_write_async(region, (uint64_t)i * BYTES, &iov, 1, &completion, NULL),
		      "write");
	}
	check(weir_flush(session), "flush"); /* all of the above is done at the donor */
	weir_memory_deregister(memory);
	weir_region_close(region);
	weir_session_close(session); /* and every callback has returned */
	free(bytes);
	printf("%d writes done, %d failed\n", progress.done, progress.failed);
	return progress.failed || progress.done != WRITES;
}
