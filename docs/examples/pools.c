/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A pool hands out buffers that are registered already, so that bytes go from them to the
 * donor and back without a copy. Here two pieces of one are gathered into one write.
 */
#include <errno.h>
#include <string.h>
#include "example.h"

static void wait_one(struct weir_queue *queue, const char *what)
{
	struct weir_event event;

	if (weir_queue_wait(queue, &event, 1, 10000) != 1)
		check(-ETIMEDOUT, what);
	check(event.status, what);
}

int main(int argc, char **argv)
{
	struct weir_session *session = example_session(argc, argv, NULL);
	struct weir_region *region = example_region(session);
	struct weir_completion completion = { 0 };
	struct weir_pool *pool;
	struct weir_iov iov[2];
	char *buffer, *back;

	check(weir_queue_create(&completion.queue), "create a queue");
	check(weir_pool_create(session, 4096, 2, &pool, NULL), "create a pool");
	buffer = weir_pool_get(pool);
	back = weir_pool_get(pool);
	if (!weir_pool_get(pool))
		printf("both buffers are out\n");

	strcpy(buffer, "head, ");
	strcpy(buffer + 2048, "body");
	iov[0] = (struct weir_iov){ buffer, 6, weir_pool_memory(pool) };
	iov[1] = (struct weir_iov){ buffer + 2048, 5, weir_pool_memory(pool) };
	check(weir_write_async(region, 0, iov, 2, &completion, NULL), "write");
	/* It overlaps the write and was submitted after it: so it reads what that wrote. */
	iov[0] = (struct weir_iov){ back, 11, weir_pool_memory(pool) };
	check(weir_read_async(region, 0, iov, 1, &completion, NULL), "read");
	wait_one(completion.queue, "write");
	wait_one(completion.queue, "read");
	printf("%s\n", back);

	weir_pool_put(pool, buffer);
	weir_pool_put(pool, back);
	weir_pool_destroy(pool);
	weir_queue_destroy(completion.queue);
	weir_region_close(region);
	weir_session_close(session);
	return 0;
}
