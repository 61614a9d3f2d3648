/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <errno.h>
#include <linux/fuse.h>
#include <signal.h>
#include <stdlib.h>

#include "apps/mount/fuse/operation_span.h"
#include "apps/mount/mount.h"
#include "lib/base/error.h"

/* FUSE's headers before the payload of a write: struct fuse_in_header, struct fuse_write_in. */
#define FUSE_HEADERS 80u
/* libfuse reads up to a page more than the largest write. */
#define BUFFER_BYTES (BUFFER_PAGE + MOUNT_TRANSFER_MAX + BUFFER_PAGE)

static __thread struct buffer *current;

static int make_spares(struct loop *loop, unsigned int count, struct weir_error *error)
{
	sem_init(&loop->nr_spares, 0, 0);
	loop->arena = aligned_alloc(BUFFER_PAGE, (size_t)count * BUFFER_BYTES);
	if (!loop->arena)
		return weir_error_set(error, -ENOMEM, "out of memory");
	for (unsigned int i = 0; i < count; i++) {
		loop->spare[i] = (struct buffer *)(loop->arena + (size_t)i * BUFFER_BYTES);
		sem_post(&loop->nr_spares);
	}
	loop->spares = count;
	return 0;
}

int loop_open(struct mount *m, unsigned int threads, struct weir_error *error)
{
	unsigned int count = threads + 1 + TRANSFERS_MAX;
	int rc;

	pthread_mutex_init(&m->loop.lock, NULL);
	if (!m->session)
		return make_spares(&m->loop, count, error);
	rc = weir_pool_create(m->session, BUFFER_BYTES, count, &m->loop.pool, error);
	if (!rc)
		m->loop.memory = weir_pool_memory(m->loop.pool);
	return rc;
}

void loop_close(struct mount *m)
{
	if (m->loop.pool)
		weir_pool_destroy(m->loop.pool);
	m->loop.pool = NULL;
	free(m->loop.arena);
	m->loop.arena = NULL;
}

static struct buffer *take_buffer(struct loop *loop)
{
	struct buffer *buffer;

	if (loop->pool)
		return weir_pool_get_wait(loop->pool);
	while (sem_wait(&loop->nr_spares))
		;
	pthread_mutex_lock(&loop->lock);
	buffer = loop->spare[--loop->spares];
	pthread_mutex_unlock(&loop->lock);
	return buffer;
}

struct buffer *buffer_claim(void)
{
	struct buffer *claimed = current;

	current = NULL;
	return claimed;
}

void buffer_put(struct mount *m, struct buffer *buffer)
{
	struct loop *loop = &m->loop;

	if (loop->pool) {
		weir_pool_put(loop->pool, buffer);
		return;
	}
	pthread_mutex_lock(&loop->lock);
	loop->spare[loop->spares++] = buffer;
	pthread_mutex_unlock(&loop->lock);
	sem_post(&loop->nr_spares);
}

/* Receives a request. Returns false when the file system or the loop has ended. */
static bool receive(struct mount *m, struct fuse_buf *request)
{
	int length;

	do {
		if (!current)
			current = take_buffer(&m->loop);
		*request = (struct fuse_buf){ .mem = current->data - FUSE_HEADERS };
		length = fuse_session_receive_buf(m->fuse, request);
	} while (length == -EINTR && !fuse_session_exited(m->fuse));
	if (length <= 0 || fuse_session_exited(m->fuse))
		return false;
	affinity_follow(&m->caller, request->mem);
	return true;
}

static void put_current(struct mount *m)
{
	struct buffer *buffer = buffer_claim();

	if (buffer)
		buffer_put(m, buffer);
}

/* Reads and writes end later, in io.c. */
static void serve_request(struct mount *m, const struct fuse_buf *request)
{
	const uint32_t opcode = ((const struct fuse_in_header *)request->mem)->opcode;
	uint64_t begun_ns = operation_time_begin(&m->operation_time);

	if ((opcode != FUSE_READ && opcode != FUSE_WRITE) || m->sealed)
		operation_span_begin(m, opcode);
	fuse_session_process_buf(m->fuse, request);
	operation_span_end();
	if (opcode != FUSE_READ && opcode != FUSE_WRITE)
		operation_time_end(&m->operation_time, OPERATION_METADATA, begun_ns);
}

int loop_first(struct mount *m)
{
	struct fuse_buf request;
	bool received = receive(m, &request);

	if (received)
		fuse_session_process_buf(m->fuse, &request);
	put_current(m);
	return received ? 0 : -EIO;
}

static void *loop_run(void *arg)
{
	struct mount *m = arg;
	struct fuse_buf request;

	while (receive(m, &request))
		serve_request(m, &request);
	put_current(m);
	fuse_session_exit(m->fuse);
	atomic_fetch_sub(&m->loop.running, 1);
	deferred_queue_wake(&m->deferred);
	return NULL;
}

static void on_interrupt(int signal)
{
	(void)signal;
}

/* The loop's lock held, or no thread started yet. */
static int add_thread(struct mount *m)
{
	atomic_fetch_add(&m->loop.running, 1);
	if (pthread_create(&m->loop.thread[atomic_load(&m->loop.threads)], NULL, loop_run, m)) {
		atomic_fetch_sub(&m->loop.running, 1);
		return -EAGAIN;
	}
	atomic_fetch_add(&m->loop.threads, 1);
	return 0;
}

int loop_start(struct mount *m, unsigned int threads)
{
	const struct sigaction action = { .sa_handler = on_interrupt };
	int rc = 0;

	/* Without SA_RESTART: the signal interrupts a thread's read in the kernel. */
	sigaction(SIGUSR1, &action, NULL);
	while (!rc && atomic_load(&m->loop.threads) < threads)
		rc = add_thread(m);
	return rc;
}

void loop_wait_begin(struct mount *m)
{
	struct loop *loop = &m->loop;
	unsigned int waiting = atomic_fetch_add(&loop->waiting, 1) + 1;

	pthread_mutex_lock(&loop->lock);
	if (waiting >= atomic_load(&loop->running) && !fuse_session_exited(m->fuse) &&
	    atomic_load(&loop->threads) < LOOP_THREADS_MAX)
		(void)add_thread(m); /* without memory, interruptions arrive late */
	pthread_mutex_unlock(&loop->lock);
}

void loop_wait_end(struct mount *m)
{
	atomic_fetch_sub(&m->loop.waiting, 1);
}

void loop_stop(struct mount *m)
{
	const struct timespec pause = { .tv_nsec = 1000000 };
	unsigned int threads;

	fuse_session_exit(m->fuse);
	pthread_mutex_lock(&m->loop.lock); /* from now on no thread is added */
	threads = atomic_load(&m->loop.threads);
	pthread_mutex_unlock(&m->loop.lock);
	while (atomic_load(&m->loop.running)) {
		/* Repeated, because a signal just before the read has no effect. */
		for (unsigned int i = 0; i < threads; i++)
			pthread_kill(m->loop.thread[i], SIGUSR1);
		nanosleep(&pause, NULL);
	}
	for (unsigned int i = 0; i < threads; i++)
		pthread_join(m->loop.thread[i], NULL);
	atomic_store(&m->loop.threads, 0);
}
