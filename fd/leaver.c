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
 *
 * A sanitizer believes that all threads have one table, so these threads make system calls that the
 * sanitizer does not see.
 */
#include <errno.h>
#include <linux/close_range.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
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
	KEEPER_SOCKET = 1, /* number in the keeper's table, the second */
};

struct keeper {
	sem_t has_started, nr_sent;
	_Atomic bool ends;
	_Atomic int users; /* the thread, and the process */
	struct sockaddr_un at;
	socklen_t length; /* of @at; 0: the keeper has no table of its own */
	pid_t leavers[LEAVERS_MAX]; /* thread ids; 0: none */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* lock held */
static struct keeper *keeper;
static int to_keeper = -1;
static bool was_used, has_failed;

static void put_keeper(struct keeper *k)
{
	if (--k->users == 0)
		free(k);
}

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
		syscall(SYS_recvmsg, KEEPER_SOCKET, &message, MSG_DONTWAIT);
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
static pid_t *find_place(struct keeper *k)
{
	int i;

	for (i = 0; i < LEAVERS_MAX; i++)
		if (!k->leavers[i] || syscall(SYS_tgkill, getpid(), k->leavers[i], 0))
			return &k->leavers[i];
	return NULL;
}

static void start_leaver(struct keeper *k, int nr)
{
	const struct timespec retry = { 0, RETRY_NS };
	struct leaver l = { .nr = nr };

	sem_init(&l.has_id, 0, 0);
	while (!(l.id = find_place(k)) || !start_thread(leave, &l))
		nanosleep(&retry, NULL);
	wait_for(&l.has_id);
	sem_destroy(&l.has_id);
}

/* Return: a socket in the keeper's own table that waits for the process; -1. */
static int listen_alone(struct keeper *k)
{
	const struct sockaddr_un any = { .sun_family = AF_UNIX };
	socklen_t length = sizeof(k->at);
	int fd = leave_table(0) ? (int)syscall(SYS_socket, AF_UNIX, SOCK_SEQPACKET, 0) : -1;

	if (fd >= 0 && !syscall(SYS_bind, fd, &any, sizeof(any.sun_family)) &&
	    !syscall(SYS_listen, fd, 1) && !syscall(SYS_getsockname, fd, &k->at, &length)) {
		k->length = length;
		return fd;
	}
	return -1; /* the thread's end closes it */
}

/* The name is for a moment, and a stranger's connection ends the keeper. */
static bool is_own_process(int fd)
{
	struct ucred peer;
	socklen_t length = sizeof(peer);

	return !syscall(SYS_getsockopt, fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) &&
	       peer.pid == getpid();
}

static bool meet_process(struct keeper *k)
{
	int listener = listen_alone(k), fd;

	sem_post(&k->has_started);
	fd = listener < 0 ? -1 : (int)syscall(SYS_accept4, listener, NULL, NULL, 0);
	return fd == KEEPER_SOCKET && is_own_process(fd) && !syscall(SYS_close, listener);
}

/* If the keeper is late, or a stranger was faster, the process may still use @arg. */
static void *keep(void *arg)
{
	struct keeper *k = arg;
	int nr;

	if (!meet_process(k))
		return NULL;
	for (;;) {
		wait_for(&k->nr_sent);
		if (k->ends)
			break;
		for (nr = 1; nr < LEAVER_BATCH && !sem_trywait(&k->nr_sent); nr++)
			;
		start_leaver(k, nr);
	}
	put_keeper(k);
	return NULL;
}

/* lock held. The end of the keeper closes what is on its way. */
static void end_keeper(void)
{
	close(to_keeper);
	to_keeper = -1;
	keeper->ends = true;
	sem_post(&keeper->nr_sent);
	put_keeper(keeper);
	keeper = NULL;
}

/* So that an idle process has neither threads nor a descriptor for this. */
static void *end_when_idle(void *unused)
{
	const struct timespec idle = { IDLE_S, 0 };
	bool is_idle;

	(void)unused;
	do {
		nanosleep(&idle, NULL);
		pthread_mutex_lock(&lock);
		is_idle = !was_used;
		was_used = false;
		if (is_idle)
			end_keeper();
		pthread_mutex_unlock(&lock);
	} while (!is_idle);
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
		free(keeper);
	}
	if (to_keeper >= 0)
		close(to_keeper);
	to_keeper = -1;
	keeper = NULL;
}

static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, start_child);
}

/* Return: whether the keeper has taken the other end of @fd. */
static bool meet_keeper(struct keeper *k, int fd)
{
	return comes_within(&k->has_started, START_MAX_S) && k->length &&
	       !connect(fd, (const struct sockaddr *)&k->at, k->length) && is_own_process(fd);
}

/*
 * lock held. The keeper makes a few system calls. If it is late, or a stranger was faster, the
 * keeper may wait for ever, so there will be no other.
 */
static bool start_keeper(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct keeper *k = fd < 0 ? NULL : calloc(1, sizeof(*k));

	if (!k)
		goto close;
	pthread_once(&once, watch_forks);
	k->users = 2;
	sem_init(&k->nr_sent, 0, 0);
	sem_init(&k->has_started, 0, 0);
	if (!start_thread(keep, k)) {
		free(k);
		goto close;
	}
	has_failed = !meet_keeper(k, fd);
	if (has_failed)
		goto close;
	keeper = k;
	to_keeper = fd;
	if (start_thread(end_when_idle, NULL))
		return true;
	end_keeper();
	return false;

close:
	if (fd >= 0)
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
	has_failed = errno == EPIPE || errno == ECONNRESET; /* the keeper has met a stranger */
	return false;
}

bool leaver_give(int socket)
{
	bool sent;

	pthread_mutex_lock(&lock);
	sent = !has_failed && (keeper || start_keeper()) && send_to_keeper(socket);
	if (sent) {
		close(socket); /* before a leaver has the other reference */
		sem_post(&keeper->nr_sent);
	}
	was_used = true;
	pthread_mutex_unlock(&lock);
	return sent;
}
