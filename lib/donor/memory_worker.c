/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>

#include "lib/base/error.h"
#include "lib/base/thread.h"
#include "lib/donor/memory_worker.h"

int weir_memory_worker_init(struct weir_memory_worker *worker, const struct weir_arena *arena,
			    unsigned int nr_keys)
{
	unsigned int i;

	*worker = (struct weir_memory_worker){
		.arena = arena,
		.queues = calloc(nr_keys, sizeof(*worker->queues)),
	};
	if (!worker->queues)
		return -ENOMEM;
	pthread_mutex_init(&worker->lock, NULL);
	pthread_cond_init(&worker->changed, NULL);
	weir_list_init(&worker->finished);
	weir_drr_init(&worker->drr);
	for (i = 0; i < nr_keys; i++) {
		weir_drr_member_init(&worker->queues[i].member, 1);
		weir_list_init(&worker->queues[i].jobs);
	}
	return 0;
}

static struct weir_memory_job *job_of_link(struct weir_list *link)
{
	return weir_list_entry(link, struct weir_memory_job, link);
}

/* Waits for the next job, and takes it off its queue. Return: NULL to end the thread. */
static struct weir_memory_job *take_job(struct weir_memory_worker *worker)
{
	struct weir_drr_member *member;
	struct weir_memory_job *job;

	while (!worker->stop && !weir_drr_first(&worker->drr))
		pthread_cond_wait(&worker->changed, &worker->lock);
	if (worker->stop)
		return NULL;
	member = weir_drr_first(&worker->drr);
	weir_drr_dequeue(member);
	job = job_of_link(weir_list_entry(member, struct weir_memory_queue, member)->jobs.next);
	weir_list_del(&job->link);
	worker->running = job;
	return job;
}

/* Charges the slice to the job's key, and puts the job behind the key's others, or finishes it. */
static void put_job(struct weir_memory_worker *worker, struct weir_memory_job *job, uint32_t cost)
{
	struct weir_memory_queue *queue = &worker->queues[job->key];
	bool is_finished = job->done == job->extent->length || job->status;

	worker->running = NULL;
	weir_drr_charge(&worker->drr, &queue->member, cost, WEIR_MEMORY_SLICE);
	weir_list_add_tail(is_finished ? &worker->finished : &queue->jobs, &job->link);
	if (weir_list_is_empty(&queue->jobs))
		weir_drr_leave(&worker->drr, &queue->member);
	else
		weir_drr_enqueue(&worker->drr, &queue->member);
	if (is_finished)
		eventfd_write(worker->wake_fd, 1);
}

/* The lock is held, but for the work itself, during which the job may turn to zeroing. */
static void run_slice(struct weir_memory_worker *worker, struct weir_memory_job *job)
{
	uint64_t left = job->extent->length - job->done;
	uint32_t length = left < WEIR_MEMORY_SLICE ? left : WEIR_MEMORY_SLICE;
	char *addr = job->extent->addr + job->done;
	bool zeroes = job->zeroes;
	int rc = 0;

	pthread_mutex_unlock(&worker->lock);
	if (zeroes)
		weir_arena_zero(worker->arena, addr, length);
	else
		rc = weir_arena_populate(addr, length);
	pthread_mutex_lock(&worker->lock);
	if (job->zeroes == zeroes) {
		job->done += length;
		job->status = job->status ? job->status : rc;
	}
	put_job(worker, job, length);
}

static void *run_worker(void *arg)
{
	struct weir_memory_worker *worker = arg;
	struct weir_memory_job *job;

	pthread_mutex_lock(&worker->lock);
	while ((job = take_job(worker)))
		run_slice(worker, job);
	pthread_mutex_unlock(&worker->lock);
	return NULL;
}

int weir_memory_worker_start(struct weir_memory_worker *worker, int wake_fd,
			     struct weir_error *error)
{
	int rc;

	worker->wake_fd = wake_fd;
	rc = weir_thread_create(&worker->thread, "weir-memory", run_worker, worker, error);
	worker->has_thread = !rc;
	return rc;
}

void weir_memory_worker_stop(struct weir_memory_worker *worker)
{
	if (!worker->has_thread)
		return;
	pthread_mutex_lock(&worker->lock);
	worker->stop = true;
	pthread_cond_signal(&worker->changed);
	pthread_mutex_unlock(&worker->lock);
	pthread_join(worker->thread, NULL);
	worker->has_thread = false;
}

void weir_memory_worker_fini(struct weir_memory_worker *worker)
{
	pthread_cond_destroy(&worker->changed);
	pthread_mutex_destroy(&worker->lock);
	free(worker->queues);
}

static void queue_job(struct weir_memory_worker *worker, struct weir_memory_job *job)
{
	struct weir_memory_queue *queue = &worker->queues[job->key];

	weir_list_add_tail(&queue->jobs, &job->link);
	if (!queue->member.is_ready)
		weir_drr_join(&worker->drr, &queue->member, WEIR_MEMORY_SLICE);
	if (!worker->running || worker->running->key != job->key)
		weir_drr_enqueue(&worker->drr, &queue->member);
	pthread_cond_signal(&worker->changed);
}

void weir_memory_worker_populate(struct weir_memory_worker *worker, struct weir_memory_job *job)
{
	pthread_mutex_lock(&worker->lock);
	queue_job(worker, job);
	pthread_mutex_unlock(&worker->lock);
}

void weir_memory_worker_zero(struct weir_memory_worker *worker, struct weir_memory_job *job)
{
	pthread_mutex_lock(&worker->lock);
	job->zeroes = true;
	job->done = 0;
	job->status = 0;
	if (worker->running != job) {
		weir_list_del(&job->link);
		queue_job(worker, job);
	}
	pthread_mutex_unlock(&worker->lock);
}

void weir_memory_worker_cancel(struct weir_memory_worker *worker, struct weir_memory_job *job)
{
	pthread_mutex_lock(&worker->lock);
	job->status = -ECANCELED;
	pthread_mutex_unlock(&worker->lock);
}

struct weir_memory_job *weir_memory_worker_finished(struct weir_memory_worker *worker)
{
	struct weir_memory_job *job = NULL;

	pthread_mutex_lock(&worker->lock);
	if (!weir_list_is_empty(&worker->finished)) {
		job = job_of_link(worker->finished.next);
		weir_list_del(&job->link);
	}
	pthread_mutex_unlock(&worker->lock);
	return job;
}
