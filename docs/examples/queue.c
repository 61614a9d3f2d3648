/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Asking instead of being called: completions collect in a queue. */
#include "example.h"

#define READS 64
#define BYTES 4096

int main(int argc, char **argv)
{
	struct weir_session *session = example_session(argc, argv, NULL);
	struct weir_region *region = example_region(session);
	struct weir_event events[16];
	struct weir_queue *queue;
	struct weir_pool *pool;
	int submitted, got, i, done = 0;

	check(weir_queue_create(&queue), "create a queue");
	check(weir_pool_create(session, BYTES, READS, &pool, NULL), "create a pool");
	for (submitted = 0; submitted < READS; submitted++) {
		void *buffer = weir_pool_get(pool);
		struct weir_completion completion = { .queue = queue, .arg = buffer };
		struct weir_iov iov = { buffer, BYTES, weir_pool_memory(pool) };

		check(weir_read_async(region, (uint64_t)submitted * BYTES, &iov, 1, &completion,
				      NULL),
		      "read");
	}
	while (done < READS) {
		got = weir_queue_wait(queue, events, 16, 1000);
		for (i = 0; i < got; i++) {
			check(events[i].status, "read");
			weir_pool_put(pool, events[i].arg); /* the buffer that was read into */
		}
		done += got;
	}
	printf("%d reads done\n", done);
	weir_pool_destroy(pool);
	weir_queue_destroy(queue);
	weir_region_close(region);
	weir_session_close(session);
	return 0;
}
