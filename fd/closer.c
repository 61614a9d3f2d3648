// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Threads start on demand, and end when no descriptor waits. A close() that blocks holds up one
 * thread, so the other threads close other senders' descriptors meanwhile. Many honest descriptors
 * may come at once, but then some thread takes a descriptor every few microseconds.
 */
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "fd/closer.h"

/* Room beyond CLOSER_BUSY_FULL is for descriptors and connections taken before. */
enum { WAITING_MAX = 4096 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int waiting[WAITING_MAX]; /* a ring */
static unsigned int first, nr, nr_threads;
static int64_t taken_ms; /* when a thread last took a descriptor */

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static bool is_inet(int fd)
{
	int domain = AF_UNSPEC;
	socklen_t length = sizeof(domain);

	return !getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &length) &&
	       (domain == AF_INET || domain == AF_INET6);
}

/* Nobody needs the sender's wish that close() waits. Even this may block. */
static void close_slowly(int fd)
{
	const struct linger off = { 0, 0 };

	if (is_inet(fd))
		setsockopt(fd, SOL_SOCKET, SO_LINGER, &off, sizeof(off));
	close(fd);
}

static void *close_waiting(void *unused)
{
	int fd;

	(void)unused;
	pthread_mutex_lock(&lock);
	while (nr) {
		fd = waiting[first];
		first = (first + 1) % WAITING_MAX;
		nr--;
		taken_ms = now_ms();
		pthread_mutex_unlock(&lock);
		close_slowly(fd);
		pthread_mutex_lock(&lock);
	}
	nr_threads--;
	pthread_mutex_unlock(&lock);
	return NULL;
}

/*
 * The child has no threads. If the parent held the lock, the ring may be inconsistent, and the
 * child keeps the waiting descriptors open.
 */
static void start_child(void)
{
	if (pthread_mutex_trylock(&lock)) {
		lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
		nr = 0;
	} else {
		pthread_mutex_unlock(&lock);
	}
	nr_threads = 0;
}

static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, start_child);
}

static bool start_thread(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_attr_t detached;
	pthread_t thread;
	sigset_t all, old;
	bool started;

	pthread_once(&once, watch_forks);
	sigfillset(&all);
	pthread_attr_init(&detached);
	pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	started = !pthread_create(&thread, &detached, close_waiting, NULL);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&detached);
	return started;
}

void closer_give(int fd)
{
	bool has_room;

	pthread_mutex_lock(&lock);
	has_room = nr < WAITING_MAX;
	if (!nr)
		taken_ms = now_ms();
	if (has_room)
		waiting[(first + nr++) % WAITING_MAX] = fd;
	if (nr_threads < CLOSER_THREADS_MAX && start_thread())
		nr_threads++;
	pthread_mutex_unlock(&lock);
	if (!has_room)
		close_slowly(fd);
}

bool closer_is_full(void)
{
	bool is_full;

	pthread_mutex_lock(&lock);
	is_full = nr >= CLOSER_BUSY_FULL ||
		  (nr >= CLOSER_FULL && now_ms() - taken_ms >= CLOSER_STALLED_MS);
	pthread_mutex_unlock(&lock);
	return is_full;
}
