/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <errno.h>
#include <signal.h>

#include "apps/mount/mount.h"

/* FUSE's headers before the payload of a write: struct fuse_in_header, struct fuse_write_in. */
#define FUSE_HEADERS 80u
/* libfuse reads up to a page more than the largest write. */
#define BUFFER_BYTES (BUFFER_PAGE + MOUNT_TRANSFER_MAX + BUFFER_PAGE)
/* Maximum of concurrent transfers. Beyond that, threads wait for a buffer before they receive. */
#define TRANSFERS_MAX 40u

static __thread struct buffer *current;

int loop_open(struct mount *m, unsigned int threads, struct weir_error *error)
{
	int rc = weir_pool_create(m->session, BUFFER_BYTES, threads + 1 + TRANSFERS_MAX,
				  &m->loop.pool, error);

	if (rc)
		return rc;
	m->loop.memory = weir_pool_memory(m->loop.pool);
	return 0;
}

void loop_close(struct mount *m)
{
	if (m->loop.pool)
		weir_pool_destroy(m->loop.pool);
	m->loop.pool = NULL;
}

struct buffer *buffer_claim(void)
{
	struct buffer *claimed = current;

	current = NULL;
	return claimed;
}

void buffer_put(struct mount *m, struct buffer *buffer)
{
	weir_pool_put(m->loop.pool, buffer);
}

/* Receives a request. Returns false when the file system or the loop has ended. */
static bool receive(struct mount *m, struct fuse_buf *request)
{
	int length;

	do {
		if (!current)
			current = weir_pool_get_wait(m->loop.pool);
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
		fuse_session_process_buf(m->fuse, &request);
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

int loop_start(struct mount *m, unsigned int threads)
{
	const struct sigaction action = { .sa_handler = on_interrupt };

	/* Without SA_RESTART: the signal interrupts a thread's read in the kernel. */
	sigaction(SIGUSR1, &action, NULL);
	for (; m->loop.threads < threads; m->loop.threads++) {
		atomic_fetch_add(&m->loop.running, 1);
		if (pthread_create(&m->loop.thread[m->loop.threads], NULL, loop_run, m)) {
			atomic_fetch_sub(&m->loop.running, 1);
			return -EAGAIN;
		}
	}
	return 0;
}

void loop_stop(struct mount *m)
{
	const struct timespec pause = { .tv_nsec = 1000000 };

	fuse_session_exit(m->fuse);
	while (atomic_load(&m->loop.running)) {
		/* Repeated, because a signal just before the read has no effect. */
		for (unsigned int i = 0; i < m->loop.threads; i++)
			pthread_kill(m->loop.thread[i], SIGUSR1);
		nanosleep(&pause, NULL);
	}
	for (; m->loop.threads; m->loop.threads--)
		pthread_join(m->loop.thread[m->loop.threads - 1], NULL);
}
