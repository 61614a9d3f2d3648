// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * An exiting thread closes descriptors only if the thread has a table of its own, and has the last
 * reference. So a thread, the keeper, has a table with one socket, which is connected to a socket
 * of the process. leaver_give() sends a socket there, and closes the process's descriptor, which
 * is not the last. Then a leaver, a thread of the keeper, makes a table of its own, receives the
 * socket, and exits.
 *
 * The keeper makes the connection itself, because the table must start empty: to close copies of
 * the process's files asks their file systems. Before Linux 6.12 the kernel copies the first 64 and
 * closes them, so the keeper may wait for a file system, and then nobody waits for the keeper.
 */
#include <errno.h>
#include <linux/close_range.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "fd/leaver.h"

enum {
	STACK_SIZE = 256 << 10,
	RETRY_NS = 5000000,
	START_MAX_S = 2,
	IDLE_S = 5,
	KEEPER_SOCKET = 0, /* number in the keeper's table */
};

struct meeting {
	sem_t done;
	struct sockaddr_un at;
	socklen_t length; /* 0: the keeper has no table of its own */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int to_keeper = -1; /* lock held */
static bool has_failed; /* lock held */
static sem_t nr_sent;
static pid_t leavers[LEAVERS_MAX]; /* thread ids; 0: none. The keeper's. */

static void wait_for(sem_t *sem)
{
	while (sem_wait(sem))
		;
}

/* Return: false: not for @seconds. */
static bool comes_within(sem_t *sem, int seconds)
{
	struct timespec until;
	int rc;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += seconds;
	do
		rc = sem_timedwait(sem, &until);
	while (rc && errno == EINTR);
	return !rc;
}

static bool start_thread(void *(*run)(void *), void *arg)
{
	pthread_attr_t attr;
	pthread_t thread;
	sigset_t all, old;
	bool started;

	sigfillset(&all);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, STACK_SIZE);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	started = !pthread_create(&thread, &attr, run, arg);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	return started;
}

static bool leave_table(unsigned int first)
{
	return !syscall(SYS_close_range, first, ~0u, CLOSE_RANGE_UNSHARE);
}

struct leaver {
	sem_t has_id;
	pid_t *id;
	int nr;
};

/* Without room for the descriptors, the kernel would close them here, before the exit. */
static void receive(int nr)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control;
	char byte;
	struct iovec part = { &byte, 1 };
	struct msghdr message;

	while (nr--) {
		message = (struct msghdr){ .msg_iov = &part,
					   .msg_iovlen = 1,
					   .msg_control = &control,
					   .msg_controllen = sizeof(control) };
		recvmsg(KEEPER_SOCKET, &message, MSG_DONTWAIT);
	}
}

static void *leave(void *arg)
{
	struct leaver *l = arg;
	int nr = l->nr;

	*l->id = syscall(SYS_gettid);
	sem_post(&l->has_id);
	if (leave_table(KEEPER_SOCKET + 1))
		receive(nr);
	return NULL;
}

/* A thread's id is free only after the thread has closed its files. */
static pid_t *find_place(void)
{
	int i;

	for (i = 0; i < LEAVERS_MAX; i++)
		if (!leavers[i] || syscall(SYS_tgkill, getpid(), leavers[i], 0))
			return &leavers[i];
	return NULL;
}

static void start_leaver(int nr)
{
	const struct timespec retry = { 0, RETRY_NS };
	struct leaver l = { .nr = nr };

	sem_init(&l.has_id, 0, 0);
	while (!(l.id = find_place()) || !start_thread(leave, &l))
		nanosleep(&retry, NULL);
	wait_for(&l.has_id);
	sem_destroy(&l.has_id);
}

/* Return: a socket in the keeper's own table that waits for the process; -1. */
static int listen_alone(struct meeting *meeting)
{
	const struct sockaddr_un any = { .sun_family = AF_UNIX };
	socklen_t length = sizeof(meeting->at);
	int fd = leave_table(0) ? socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0) : -1;

	if (fd >= 0 && !bind(fd, (const struct sockaddr *)&any, sizeof(any.sun_family)) &&
	    !listen(fd, 1) && !getsockname(fd, (struct sockaddr *)&meeting->at, &length)) {
		meeting->length = length;
		return fd;
	}
	return -1; /* the thread's end closes it */
}

/* The name is for a moment, and a stranger's connection ends the keeper. */
static bool is_own_process(int fd)
{
	struct ucred peer;
	socklen_t length = sizeof(peer);

	return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) && peer.pid == getpid();
}

/* The end of the thread closes what is on its way. */
static void *keep(void *arg)
{
	struct meeting *meeting = arg;
	int listener = listen_alone(meeting), fd, nr;

	sem_post(&meeting->done);
	fd = listener < 0 ? -1 : accept(listener, NULL, NULL);
	if (fd < 0 || !is_own_process(fd) || dup2(fd, KEEPER_SOCKET) < 0)
		return NULL;
	if (fd != KEEPER_SOCKET)
		close(fd);
	if (listener != KEEPER_SOCKET)
		close(listener);
	while (comes_within(&nr_sent, IDLE_S)) {
		for (nr = 1; nr < LEAVER_BATCH && !sem_trywait(&nr_sent); nr++)
			;
		start_leaver(nr);
	}
	return NULL;
}

/* The child has no keeper. If the parent held the lock, the child makes none, either. */
static void start_child(void)
{
	if (pthread_mutex_trylock(&lock)) {
		lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
		has_failed = true;
	} else {
		pthread_mutex_unlock(&lock);
	}
	if (to_keeper >= 0)
		close(to_keeper);
	to_keeper = -1;
	memset(leavers, 0, sizeof(leavers));
}

static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, start_child);
}

/*
 * lock held. The keeper makes a few system calls. If it is late, or a stranger was faster, the
 * keeper may wait for ever, so there will be no other.
 */
static bool start_keeper(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	static struct meeting meeting;
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return false;
	pthread_once(&once, watch_forks);
	meeting.length = 0;
	sem_init(&nr_sent, 0, 0);
	sem_init(&meeting.done, 0, 0);
	if (start_thread(keep, &meeting)) {
		has_failed = !comes_within(&meeting.done, START_MAX_S) || !meeting.length ||
			     connect(fd, (const struct sockaddr *)&meeting.at, meeting.length) ||
			     !is_own_process(fd);
		if (!has_failed) {
			to_keeper = fd;
			return true;
		}
	}
	close(fd);
	return false;
}

static bool send_to_keeper(int socket)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control = { .head = { CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS } };
	struct iovec part = { "", 1 };
	struct msghdr message = { .msg_iov = &part,
				  .msg_iovlen = 1,
				  .msg_control = &control,
				  .msg_controllen = sizeof(control) };

	memcpy(CMSG_DATA(&control.head), &socket, sizeof(socket));
	if (sendmsg(to_keeper, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == 1)
		return true;
	if (errno == EPIPE || errno == ECONNRESET) { /* the keeper has ended */
		close(to_keeper);
		to_keeper = -1;
	}
	return false;
}

static bool reaches_keeper(int socket)
{
	if (to_keeper >= 0 && send_to_keeper(socket))
		return true;
	return to_keeper < 0 && start_keeper() && send_to_keeper(socket);
}

bool leaver_give(int socket)
{
	bool sent;

	pthread_mutex_lock(&lock);
	sent = !has_failed && reaches_keeper(socket);
	if (sent) {
		close(socket); /* before a leaver has the other reference */
		sem_post(&nr_sent);
	}
	pthread_mutex_unlock(&lock);
	return sent;
}
