// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * An exiting thread closes descriptors only if the thread has a table of its own, and has the last
 * reference. So a thread, the keeper, has a table with one socket, which is connected to a socket
 * of the process. leaver_give() sends a socket there, and closes the process's descriptor, which
 * is not the last. Then a leaver, a thread of the keeper, makes a table of its own, receives the
 * socket, and exits.
 *
 * The keeper makes its socket itself, because the table must start empty: to close copies of the
 * process's files asks their file systems. Before Linux 6.12 the kernel copies the first 64 and
 * closes them, so a keeper may wait for a file system, and then the process gives that keeper up.
 *
 * Each of the two datagram sockets finds the other one by a name, which strangers see. The kernel
 * lets nobody but the peer send to a connected socket. So the keeper's socket is connected before
 * the name exists, and the process's socket receives nothing at all.
 *
 * A sanitizer believes that all threads have one table, so these threads make system calls that the
 * sanitizer does not see.
 */
#include <errno.h>
#include <linux/close_range.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
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
	IDLE_S = 5,
	KEEPERS_MAX = 4, /* with those that wait for a file system */
	KEEPER_SOCKET = 0, /* number in the keeper's table */
};

struct end {
	struct sockaddr_un at;
	socklen_t length;
};

struct keeper {
	sem_t nr_sent;
	_Atomic bool ends;
	_Atomic int users; /* the thread, and the process; 0: the place is free */
	struct end process;
	pid_t leavers[LEAVERS_MAX]; /* thread ids; 0: none */
	/* The lock guards the rest. */
	bool has_tried; /* to open the keeper's end */
	struct end own; /* length 0: failed */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t tried = PTHREAD_COND_INITIALIZER;
/* lock held */
static struct keeper keepers[KEEPERS_MAX];
static struct keeper *keeper;
static int to_keeper = -1; /* without a keeper: one starts */
static time_t retry_s; /* no keeper starts before */
static bool was_used, is_impossible;

static void wait_for(sem_t *sem)
{
	while (sem_wait(sem))
		;
}

static struct timespec now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t;
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

/* Return: false: the keeper must end, which closes all sockets that have come. */
static bool start_leaver(struct keeper *k, int nr)
{
	const struct timespec retry = { 0, RETRY_NS };
	struct leaver l = { .nr = nr };
	bool has_started = false;
	int failures = 0;

	sem_init(&l.has_id, 0, 0);
	while (!k->ends && failures < LEAVER_FAILURES_MAX) {
		l.id = find_place(k);
		has_started = l.id && start_thread(leave, &l);
		if (has_started) {
			wait_for(&l.has_id);
			break;
		}
		failures += l.id != NULL;
		nanosleep(&retry, NULL);
	}
	sem_destroy(&l.has_id);
	return has_started;
}

/* Return: a socket with a name, to which @peer sends, or, without one, nobody; -1. */
static int open_end(struct end *own, const struct end *peer)
{
	const struct sockaddr_un any = { .sun_family = AF_UNIX };
	socklen_t length = sizeof(own->at);
	int fd = (int)syscall(SYS_socket, AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -1;
	if (!(peer ? syscall(SYS_connect, fd, &peer->at, peer->length) :
		     syscall(SYS_shutdown, fd, SHUT_RD)) &&
	    !syscall(SYS_bind, fd, &any, sizeof(any.sun_family)) &&
	    !syscall(SYS_getsockname, fd, &own->at, &length)) {
		own->length = length;
		return fd;
	}
	syscall(SYS_close, fd);
	return -1;
}

static bool meet_process(struct keeper *k)
{
	struct end own = { .length = 0 };
	bool has_table = leave_table(0), is_short = errno == ENOMEM || errno == EMFILE;
	bool has_end = has_table && open_end(&own, &k->process) == KEEPER_SOCKET;

	pthread_mutex_lock(&lock);
	is_impossible = !has_table && !is_short;
	k->own = own;
	k->has_tried = true;
	pthread_cond_broadcast(&tried);
	pthread_mutex_unlock(&lock);
	return has_end;
}

static void *keep(void *arg)
{
	struct keeper *k = arg;
	bool goes_on = meet_process(k);
	int nr;

	while (goes_on) {
		wait_for(&k->nr_sent);
		for (nr = 1; nr < LEAVER_BATCH && !sem_trywait(&k->nr_sent); nr++)
			;
		goes_on = !k->ends && start_leaver(k, nr);
	}
	k->users--;
	return NULL;
}

/* lock held. The end of the keeper closes what is on its way. */
static void end_keeper(struct keeper *k)
{
	close(to_keeper);
	to_keeper = -1;
	k->ends = true;
	sem_post(&k->nr_sent);
	k->users--;
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
			end_keeper(keeper);
		pthread_mutex_unlock(&lock);
	} while (!is_idle);
	return NULL;
}

/* The child has no keeper. If the parent held the lock, @to_keeper may be anything. */
static void start_child(void)
{
	int i;

	if (pthread_mutex_trylock(&lock)) {
		lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	} else {
		pthread_mutex_unlock(&lock);
		if (to_keeper >= 0)
			close(to_keeper);
	}
	for (i = 0; i < KEEPERS_MAX; i++)
		keepers[i].users = 0;
	tried = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
	to_keeper = -1;
	keeper = NULL;
	retry_s = 0;
}

static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, start_child);
}

/* lock held, but not during the wait. Return: whether the process can send to the keeper. */
static bool meet_keeper(struct keeper *k)
{
	struct timespec until = now();
	int rc = 0;

	until.tv_sec += LEAVER_START_S;
	while (!k->has_tried && !rc)
		rc = pthread_cond_clockwait(&tried, &lock, CLOCK_MONOTONIC, &until);
	return k->own.length &&
	       !connect(to_keeper, (const struct sockaddr *)&k->own.at, k->own.length);
}

/* lock held */
static struct keeper *find_free(void)
{
	int i;

	for (i = 0; i < KEEPERS_MAX; i++)
		if (!keepers[i].users)
			return &keepers[i];
	return NULL;
}

/* lock held, but not while the keeper makes its few system calls. */
static bool start_keeper(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct keeper *k = find_free();

	if (to_keeper >= 0 || is_impossible || !k || now().tv_sec < retry_s)
		return false;
	pthread_once(&once, watch_forks);
	retry_s = now().tv_sec + LEAVER_RETRY_S;
	*k = (struct keeper){ .users = 0 };
	to_keeper = open_end(&k->process, NULL);
	if (to_keeper < 0)
		return false;
	k->users = 2;
	sem_init(&k->nr_sent, 0, 0);
	if (!start_thread(keep, k)) {
		k->users--;
		end_keeper(k);
		return false;
	}
	if (!meet_keeper(k) || !start_thread(end_when_idle, NULL)) {
		end_keeper(k);
		return false;
	}
	keeper = k;
	retry_s = 0;
	return true;
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
	return sendmsg(to_keeper, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == 1;
}

/* A keeper that takes nothing, perhaps because it has ended, is idle, too. */
bool leaver_give(int socket)
{
	bool sent;

	pthread_mutex_lock(&lock);
	sent = (keeper || start_keeper()) && send_to_keeper(socket);
	if (sent) {
		close(socket); /* before a leaver has the other reference */
		sem_post(&keeper->nr_sent);
		was_used = true;
	}
	pthread_mutex_unlock(&lock);
	return sent;
}
