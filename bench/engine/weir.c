/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * weir in the same loop, with three of its ways of batching, and as hybrid with events ("asleep").
 * Requests that are ready together are submitted together; all lanes share a session. A running
 * donor lends the memory: RIVAL_DONOR is its address, RIVAL_KEY the file of its key.
 */
#include "bench/engine/rival.h"

#include <stdlib.h>
#include <weir/weir.h>

static struct weir_region *region;
static struct weir_memory *memory;

/* A lane's requests not yet submitted. */
static struct session_lane {
	struct weir_queue *queue;
	struct weir_transfer transfers[DEPTH_MAX];
	struct weir_iov iovs[DEPTH_MAX];
	unsigned int count;
} lanes[LANES_MAX];

static void weir_lend(int socket, void *unused, const struct transport_job *job)
{
	(void)unused, (void)job;
	until_over(socket, NULL);
}

/* Touches the donor's memory, so that no first touch is measured. */
static void touch(uint64_t bytes)
{
	static char zeroes[1 << 20]; /* a round trip a page would take long on a slow device */
	uint64_t at;

	for (at = 0; at < bytes; at += sizeof(zeroes))
		must(!weir_write(region, at, zeroes, sizeof(zeroes)), "write", "failed");
}

static void borrow(void *buffers, const struct transport_job *job, enum weir_batching batching,
		   enum weir_polling polling)
{
	const char *donor = getenv("RIVAL_DONOR"), *file = getenv("RIVAL_KEY");
	const struct weir_session_tuning tuning = { .size = sizeof(tuning), .batching = batching };
	struct weir_session_options options = { .size = sizeof(options),
						.polling = polling,
						.tuning = &tuning };
	struct weir_session *session;
	struct weir_key *key = NULL;
	struct weir_error error;
	int i;

	must(donor, "RIVAL_DONOR", "is not set to a donor's address");
	must(!file || !weir_key_load(file, &key, &error), "RIVAL_KEY", error.text);
	options.key = key;
	must(!weir_session_open(donor, &options, &session, &error), "session", error.text);
	must(!weir_region_create(session, NULL, job->lent_bytes, 0, &region, &error), "region",
	     error.text);
	touch(job->lent_bytes);
	must(!weir_memory_register(session, buffers, job->buffers_bytes, &memory, &error), "memory",
	     error.text);
	for (i = 0; i < job->lanes; i++)
		must(!weir_queue_create(&lanes[i].queue), "queue", "there is not enough memory");
}

static void borrow_hybrid(int socket, void *buffers, const struct transport_job *job)
{
	(void)socket;
	borrow(buffers, job, WEIR_BATCHING_HYBRID, WEIR_POLLING_ADAPTIVE);
}

static void borrow_single(int socket, void *buffers, const struct transport_job *job)
{
	(void)socket;
	borrow(buffers, job, WEIR_BATCHING_SINGLE, WEIR_POLLING_ADAPTIVE);
}

static void borrow_doorbell(int socket, void *buffers, const struct transport_job *job)
{
	(void)socket;
	borrow(buffers, job, WEIR_BATCHING_DOORBELL, WEIR_POLLING_ADAPTIVE);
}

static void borrow_asleep(int socket, void *buffers, const struct transport_job *job)
{
	(void)socket;
	borrow(buffers, job, WEIR_BATCHING_HYBRID, WEIR_POLLING_EVENT);
}

static void weir_post(int number, bool is_read, void *buffer, size_t size, uint64_t offset)
{
	struct session_lane *lane = &lanes[number];
	struct weir_iov *iov = &lane->iovs[lane->count];

	*iov = (struct weir_iov){ buffer, size, memory };
	lane->transfers[lane->count++] = (struct weir_transfer){
		.direction = is_read ? WEIR_READ : WEIR_WRITE,
		.region = region,
		.offset = offset,
		.iov = iov,
		.iovcnt = 1,
		.completion = { .queue = lane->queue },
	};
}

static int weir_reap(int number)
{
	struct session_lane *lane = &lanes[number];
	struct weir_event events[DEPTH_MAX];
	int i, got;

	must(!weir_transfer_async(lane->transfers, lane->count, NULL), "request", "refused");
	lane->count = 0;
	got = weir_queue_wait(lane->queue, events, DEPTH_MAX, -1);
	for (i = 0; i < got; i++)
		must(!events[i].status, "completion", "failed");
	return got;
}

#define WAY(way)                                  \
	const struct transport rival_##way = {    \
		.name = #way,                     \
		.lend = weir_lend,                \
		.borrow = borrow_##way,           \
		.post = weir_post,                \
		.reap = weir_reap,                \
	}

WAY(hybrid);
WAY(single);
WAY(doorbell);
WAY(asleep);
