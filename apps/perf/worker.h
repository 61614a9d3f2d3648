/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A worker: one thread that keeps its slots full. A slot is a request in flight, with its buffer;
 * it comes back through the worker's queue, where the worker waits also for its turn.
 */
#ifndef WEIR_APPS_PERF_WORKER_H
#define WEIR_APPS_PERF_WORKER_H

#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdint.h>
#include <weir/request.h>

#include "apps/perf/histogram.h"
#include "apps/perf/options.h"
#include "apps/perf/target.h"
#include "apps/perf/trace.h"
#include "apps/perf/verify.h"

/* What was asked for next. */
struct want {
	bool is_write;
	uint64_t offset, length;
};

/**
 * struct perf_slot - a request
 * @next: of those that are free
 * @in_flight: until its completion was taken
 * @begin_ns: when it was submitted
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
 * struct load - what all workers share
 * @targets: options->nr_donors of them
 * @workers: options->threads of them
 * @verify: NULL if nothing is to be compared
 * @started: they may begin; atomic
 * @stop: no new requests; atomic
 * @done: requests of the trace that are done; atomic
 * @running: workers that are; atomic. The last one posts @ended
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
 * struct perf_worker - one thread; the thread's own unless noted
 * @target: the one that it uses: workers take turns
 * @free: slots to be used; @in_flight: those that are not here
 * @batch: those filled and not submitted yet, @nr_batch of them
 * @queue: where slots come back, and others wake it; @events: those taken from there
 * @at: with a trace, the next record to look at
 * @turn: with a trace, how many must be done before it goes on, UINT64_MAX if it does not wait;
 *	atomic
 * @quota: requests that it may still submit
 * @has_begun: it has submitted some
 * @ops: that are done; others may read it, atomically. @bytes: what they moved
 * @twice: completions for what was not in flight
 * @begin_ns, @end_ns: of its first submission and its last completion
 * @error: the first, and what it was about
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
	struct histogram latency;
};

/* All workers begin; they submit no more. Context: any thread. */
void load_start(struct load *load);
void load_stop(struct load *load);

/* @buffers: one a slot, @slot_bytes each. Return: 0; -ENOMEM. Owes a worker_fini() in any case. */
int worker_init(struct perf_worker *worker, struct load *load, unsigned int index,
		unsigned char *buffers, uint64_t slot_bytes);
/* Its completions have returned: the session is closed. */
void worker_fini(struct perf_worker *worker);

void *worker_run(void *worker);

#endif
