/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The thread that populates and zeroes the donor's memory, so that the donor's thread does no work
 * in proportion to bytes.
 *
 * A job covers one extent. The worker does a slice of a job at a time. Keys take turns by deficit
 * round robin, and so do the jobs of a key: a small job never waits for the whole of a large one.
 */
#ifndef WEIR_LIB_DONOR_MEMORY_WORKER_H
#define WEIR_LIB_DONOR_MEMORY_WORKER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <weir/error.h>
#include "core/base/list.h"
#include "core/sched/drr.h"
#include "lib/donor/arena.h"

#define WEIR_MEMORY_SLICE (2u << 20) /* a huge page; bounds how long the address space is locked */

/**
 * struct weir_memory_job - work on an extent
 * @key: index of the key that pays with its turns
 * @zeroes: else the job populates
 * @done: bytes of @extent
 * @status: 0, or the negative errno that ended the job
 *
 * Guarded by the worker's lock from weir_memory_worker_populate() or _zero() until the worker
 * returns the job as finished.
 */
struct weir_memory_job {
	struct weir_list link;
	const struct weir_arena_extent *extent;
	unsigned int key;
	bool zeroes;
	uint64_t done;
	int status;
};

struct weir_memory_queue {
	struct weir_drr_member member;
	struct weir_list jobs;
};

/**
 * struct weir_memory_worker - the thread and its queues
 * @queues: one for each key
 * @running: the job whose slice is under way, in no list
 * @finished: jobs for the donor's thread, which @wake_fd wakes
 */
struct weir_memory_worker {
	const struct weir_arena *arena;
	int wake_fd;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool has_thread, stop;
	struct weir_drr drr;
	struct weir_memory_queue *queues;
	const struct weir_memory_job *running;
	struct weir_list finished;
};

/* Return: 0; -ENOMEM. */
int weir_memory_worker_init(struct weir_memory_worker *worker, const struct weir_arena *arena,
			    unsigned int nr_keys);
int weir_memory_worker_start(struct weir_memory_worker *worker, int wake_fd,
			     struct weir_error *error);

/* Ends the thread after its current slice. The remaining jobs belong to the caller again. */
void weir_memory_worker_stop(struct weir_memory_worker *worker);
void weir_memory_worker_fini(struct weir_memory_worker *worker);

/* Begins to populate. The caller owes nothing until the job is finished or turned to zeroing. */
void weir_memory_worker_populate(struct weir_memory_worker *worker, struct weir_memory_job *job);

/* Begins to zero. If the job was still populating, that ends. */
void weir_memory_worker_zero(struct weir_memory_worker *worker, struct weir_memory_job *job);

/* Ends a job of populating early, with -ECANCELED. No effect on a finished job. */
void weir_memory_worker_cancel(struct weir_memory_worker *worker, struct weir_memory_job *job);

/* Return: a finished job, the earliest first; NULL if there is none. */
struct weir_memory_job *weir_memory_worker_finished(struct weir_memory_worker *worker);

#endif
