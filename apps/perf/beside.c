/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/perf/beside.h"
#include "apps/common/cmd.h"

#include <pthread.h>
#include <stdlib.h>
#include <weir/request.h>

#define BESIDE_BYTES (1u << 20) /* of a write */
#define BESIDE_DEPTH 16u

/**
 * struct beside - the bulk
 * @tuning: of its session
 * @buffer: what is written, everywhere
 * @bytes: written; atomic
 * @stop: no new writes; atomic
 * @error: the first
 */
struct beside {
	struct weir_session_tuning tuning;
	struct cmd_client client;
	struct weir_region *region;
	struct weir_queue *queue;
	pthread_t thread;
	bool has_thread;
	unsigned char *buffer;
	uint64_t bytes;
	bool stop;
	int error;
};

static bool write_next(struct beside *b, uint64_t place)
{
	const struct weir_iov iov = { b->buffer, BESIDE_BYTES, NULL };
	const struct weir_completion completion = { .queue = b->queue, .arg = (void *)place };
	int rc = weir_write_async(b->region, place * BESIDE_BYTES, &iov, 1, &completion, NULL);

	if (rc && !b->error)
		b->error = rc;
	return !rc;
}

static void *write_on(void *arg)
{
	struct weir_event events[BESIDE_DEPTH];
	struct beside *b = arg;
	unsigned int in_flight = 0;

	while (in_flight < BESIDE_DEPTH && write_next(b, in_flight))
		in_flight++;
	while (in_flight) {
		int count = weir_queue_wait(b->queue, events, BESIDE_DEPTH, -1);

		for (int i = 0; i < count; i++) {
			in_flight--;
			if (events[i].status && !b->error)
				b->error = events[i].status;
			__atomic_fetch_add(&b->bytes, BESIDE_BYTES, __ATOMIC_RELAXED);
			if (!b->error && !__atomic_load_n(&b->stop, __ATOMIC_RELAXED) &&
			    write_next(b, (uint64_t)events[i].arg))
				in_flight++;
		}
	}
	return NULL;
}

int beside_start(const struct perf_options *o, struct beside **beside)
{
	struct weir_session_options session = o->session;
	struct weir_error error;
	struct beside *b;
	int status;

	*beside = NULL;
	if (!o->has_beside)
		return 0;
	b = *beside = calloc(1, sizeof(*b));
	if (!b)
		return failure(o->cmd, "out of memory");
	b->tuning = o->tuning;
	b->tuning.class_nr = o->beside.class_nr;
	b->tuning.weight = o->beside.weight;
	session.tuning = &b->tuning;
	status = client_open_with(&b->client, o->cmd, o->donors[0], &session, o->key);
	if (status) {
		b->client.session = NULL;
		return status;
	}
	if (weir_region_create(b->client.session, NULL, BESIDE_DEPTH * BESIDE_BYTES, 0, &b->region,
			       &error))
		return failure(o->cmd, "%s: --beside: %s", o->donors[0], error.text);
	b->buffer = calloc(1, BESIDE_BYTES);
	if (!b->buffer || weir_queue_create(&b->queue) ||
	    pthread_create(&b->thread, NULL, write_on, b))
		return failure(o->cmd, "out of memory");
	b->has_thread = true;
	return 0;
}

uint64_t beside_bytes(const struct beside *b)
{
	return b ? __atomic_load_n(&b->bytes, __ATOMIC_RELAXED) : 0;
}

int beside_stop(const struct perf_options *o, struct beside *b)
{
	int error;

	if (!b)
		return 0;
	__atomic_store_n(&b->stop, true, __ATOMIC_RELAXED);
	if (b->has_thread)
		pthread_join(b->thread, NULL);
	error = b->error;
	if (b->client.session)
		client_close(&b->client);
	weir_queue_destroy(b->queue);
	free(b->buffer);
	free(b);
	return error ? failure(o->cmd, "--beside: %s", weir_strerror(error)) : 0;
}
