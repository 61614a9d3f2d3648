/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A policy of the window: at most as many work requests in flight as complete soon enough. One more
 * after each that was soon, half as many after one that was late (as TCP does).
 */
#include "example.h"

#include <weir/tuning.h>

#define WRITES 2000
#define BYTES 4096
#define SOON_NS 200000

struct halving {
	unsigned long heard, late;
	uint64_t wrs; /* the present limit */
	uint64_t most; /* in flight, of all that was heard of */
};

static void completed(void *arg, const struct weir_window_sample *sample,
		      struct weir_window_limits *limits)
{
	struct halving *h = arg;
	int is_late = sample->completed_ns - sample->posted_ns > SOON_NS;

	h->heard++;
	h->late += is_late;
	if (h->most < sample->wrs_in_flight)
		h->most = sample->wrs_in_flight;
	limits->bytes = UINT64_MAX; /* whatever window_bytes allows */
	limits->wrs = is_late ? limits->wrs / 2 : limits->wrs + 1;
	h->wrs = limits->wrs;
}

int main(int argc, char **argv)
{
	static struct halving halving;
	const struct weir_window_policy policy = { .size = sizeof(policy),
						   .completed = completed,
						   .arg = &halving };
	const struct weir_session_tuning tuning = { .size = sizeof(tuning),
						    .batching = WEIR_BATCHING_DOORBELL,
						    .window_wrs = 64,
						    .window_policy = &policy };
	const struct weir_session_options options = { .size = sizeof(options),
						      .tuning = &tuning };
	struct weir_session *session = example_session(argc, argv, &options);
	struct weir_region *region = example_region(session);
	static char data[BYTES];
	struct weir_event events[64];
	struct weir_queue *queue;
	int got, i, submitted = 0, done = 0;

	check(weir_queue_create(&queue), "create a queue");
	while (done < WRITES) {
		for (; submitted < WRITES && submitted - done < 128; submitted++) {
			struct weir_completion completion = { .queue = queue };
			struct weir_iov iov = { data, BYTES, NULL };

			uint64_t at = (uint64_t)(submitted % 256) * BYTES;

			check(weir_write_async(region, at, &iov, 1, &completion, NULL), "write");
		}
		got = weir_queue_wait(queue, events, 64, 10000);
		check(got, "wait");
		for (i = 0; i < got; i++)
			check(events[i].status, "write");
		done += got;
	}
	weir_queue_destroy(queue);
	weir_region_close(region);
	weir_session_close(session);
	printf("the policy heard of %lu work requests, %lu of them late\n", halving.heard,
	       halving.late);
	printf("at most %llu were in flight of the 64 allowed\n",
	       (unsigned long long)halving.most);
	return 0;
}
