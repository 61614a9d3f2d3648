/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A worker: a thread that keeps its slots in flight. A slot is a request with its buffer. It
 * completes through the worker's queue, where the worker also waits for its turn.
 */
#ifndef WEIR_APPS_PERF_WORKER_H
#define WEIR_APPS_PERF_WORKER_H

#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdint.h>
#include <weir/request.h>

#include "core/base/histogram.h"
#include "apps/perf/options.h"
#include "apps/perf/target.h"
#include "apps/perf/trace.h"
#include "apps/perf/verify.h"

/* The next request. */
struct want {
	bool is_write;
	uint64_t offset, length;
};

/**
 * struct perf_slot - a request
 * @next: in the list of free slots
 * @in_flight: until the completion is taken
 * @want: the request
 * @begin_ns: time of submission
 * @buffer: its data
 * @iov: the buffer as passed to the library
 */
struct perf_slot {
	struct perf_slot *next;
	bool in_flight;
	struct want want;
	uint64_t begin_ns;
	unsigned char *buffer;
	struct weir_iov iov;
};

/**
 * struct load - state shared by all workers
 * @options: the command line
 * @trace: NULL without a trace
 * @targets: options->nr_donors targets
 * @workers: options->threads workers
 * @verify: NULL without verification
 * @started: workers may begin; atomic
 * @stop: no new requests; atomic
 * @done: completed requests of the trace; atomic
 * @running: running workers; atomic. The last worker posts @ended
 * @ended: posted at the end
 */
struct load {
	const struct perf_options *options;
	const struct page_trace *trace;
	struct perf_target *targets;
	struct perf_worker *workers;
	struct verify *verify;
	bool started, stop;
	uint64_t done;
	unsigned int running;
	sem_t ended;
};

/**
 * struct perf_worker - a worker; owned by its thread unless noted
 * @target: the worker's target; workers are distributed in turn
 * @slots: all slots
 * @free: free slots
 * @in_flight: number of slots in flight
 * @batch: @nr_batch slots filled and not submitted
 * @queue: completions arrive here; other workers wake it
 * @events: completions taken from @queue
 * @walk: the worker's walk
 * @at: with a trace, the next record
 * @turn: with a trace, the number of completed requests to wait for; UINT64_MAX if not waiting;
 *	atomic
 * @quota: requests left to submit
 * @has_begun: at least a request was submitted
 * @ops: completed requests; others read it atomically
 * @bytes: bytes moved
 * @twice: completions of slots not in flight
 * @begin_ns: time of the first submission
 * @end_ns: time of the last completion
 * @error: the first error
 * @failed: the request that failed
 * @latency: of the worker's requests
 */
struct perf_worker {
	struct load *load;
	struct perf_target *target;
	unsigned int index;
	pthread_t thread;
	struct perf_slot *slots, *free;
	unsigned int in_flight;
	struct weir_transfer *batch;
	unsigned int nr_batch;
	struct weir_queue *queue;
	struct weir_event *events;
	struct perf_walk walk;
	size_t at;
	uint64_t turn;
	uint64_t quota;
	bool has_begun;
	uint64_t ops, bytes, twice;
	uint64_t begin_ns, end_ns;
	int error;
	struct want failed;
	struct weir_histogram latency;
};

/* Start all workers; stop new requests. Context: any thread. */
void load_start(struct load *load);
void load_stop(struct load *load);

/*
 * @buffers: a buffer of @slot_bytes per slot. Return: 0; -ENOMEM. The caller owes a worker_fini()
 * in any case.
 */
int worker_init(struct perf_worker *worker, struct load *load, unsigned int index,
		unsigned char *buffers, uint64_t slot_bytes);
/* All completions must have returned: call after closing the session. */
void worker_fini(struct perf_worker *worker);

void *worker_run(void *worker);

#endif
