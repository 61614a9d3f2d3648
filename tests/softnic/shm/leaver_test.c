// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Test: softnic leaver; devices: softnic; timeout: 120 */
/* Exiting threads close sockets, also while strangers, forks and a lack of threads disturb. */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "fd/leaver.h"

enum { CLOSE_MAX_MS = 60000 };

/* What happens once the keeper has a name, and while the process is about to connect. */
static void (*at_connect)(int fd, const struct sockaddr *to, socklen_t length);

/* Takes the place of the C library's function, also for the code under test. */
int connect(int fd, const struct sockaddr *to, socklen_t length)
{
	int (*next)(int, const struct sockaddr *, socklen_t);
	void (*first)(int, const struct sockaddr *, socklen_t) = at_connect;

	at_connect = NULL;
	if (first)
		first(fd, to, length);
	next = (__typeof__(next))dlsym(RTLD_NEXT, "connect");
	return next(fd, to, length);
}

/* Threads that may start. The others are refused, or, while @is_late is set, run only later. */
static _Atomic int nr_allowed = 1000, nr_refused;
static _Atomic bool is_late;
static void *(*late_start)(void *);
static void *late_arg;

/* Takes the place of the C library's function, also for the code under test. */
int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *), void *arg)
{
	int (*next)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

	if (nr_allowed > 0) {
		nr_allowed--;
		next = (__typeof__(next))dlsym(RTLD_NEXT, "pthread_create");
		return next(thread, attr, start, arg);
	}
	late_start = start;
	late_arg = arg;
	nr_refused++;
	return is_late ? 0 : EAGAIN;
}

static _Atomic bool is_over; /* the time that a caller may wait for a keeper */

/* Takes the place of the C library's function, also for the code under test. */
int pthread_cond_clockwait(pthread_cond_t *cond, pthread_mutex_t *lock, clockid_t clock,
			   const struct timespec *until)
{
	int (*next)(pthread_cond_t *, pthread_mutex_t *, clockid_t, const struct timespec *);

	next = (__typeof__(next))dlsym(RTLD_NEXT, "pthread_cond_clockwait");
	if (!is_late)
		return next(cond, lock, clock, until);
	pthread_mutex_unlock(lock);
	while (!is_over)
		usleep(1000);
	pthread_mutex_lock(lock);
	return ETIMEDOUT;
}

static _Atomic bool is_idle; /* an unused keeper has had time to end */

/* Takes the place of the C library's function, also for the code under test. */
int nanosleep(const struct timespec *time, struct timespec *left)
{
	int (*next)(const struct timespec *, struct timespec *);

	next = (__typeof__(next))dlsym(RTLD_NEXT, "nanosleep");
	if (!time->tv_sec)
		return next(time, left);
	do
		usleep(1000);
	while (!is_idle);
	return 0;
}

/* Return: whether the socket was taken, and then closed. */
static bool is_closed(void)
{
	struct pollfd other = { .events = POLLIN };
	int pair[2];
	bool taken;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	taken = leaver_give(pair[0]);
	if (taken) {
		other.fd = pair[1];
		assert_int_equal(poll(&other, 1, CLOSE_MAX_MS), 1);
	} else {
		close(pair[0]);
	}
	close(pair[1]);
	return taken;
}

/* After a keeper that failed, a new one is due. */
static void wait_for_new_keeper(void)
{
	is_idle = true;
	while (!is_closed())
		usleep(100000);
	is_idle = false;
}

static int nr_threads_at_start;

static int count_threads(void)
{
	DIR *dir = opendir("/proc/self/task");
	int nr = 0;

	while (readdir(dir))
		nr++;
	closedir(dir);
	return nr;
}

static void *tell_id(void *id)
{
	*(pid_t *)id = (pid_t)syscall(SYS_gettid);
	return NULL;
}

/* With the first thread of a process, TSan starts one of its own, which stays. */
static void note_threads_at_start(void)
{
	pthread_t thread;
	pid_t id;

	pthread_create(&thread, NULL, tell_id, &id);
	pthread_join(thread, NULL);
	while (!syscall(SYS_tgkill, getpid(), id, 0))
		usleep(1000);
	nr_threads_at_start = count_threads();
}

static int stranger_refused_errno(const struct sockaddr *to, socklen_t length)
{
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int error = sendto(fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL, to, length) < 0 ? errno : 0;

	if (error == EPERM) {
		assert_int_equal(connect(fd, to, length), -1);
		assert_int_equal(errno, EPERM);
	}
	close(fd);
	return error;
}

static void disturb(int fd, const struct sockaddr *to, socklen_t length)
{
	struct sockaddr_un own;
	socklen_t own_length = sizeof(own);

	assert_int_equal(getsockname(fd, (struct sockaddr *)&own, &own_length), 0);
	assert_int_equal(stranger_refused_errno(to, length), EPERM);
	assert_int_equal(stranger_refused_errno((struct sockaddr *)&own, own_length), EPIPE);
}

static void test_strangers_that_see_a_name_change_nothing(void **state)
{
	(void)state;
	at_connect = disturb;
	wait_for_new_keeper();
	assert_null(at_connect);
	assert_true(is_closed());
}

/* The threads' sockets are closed without them, and nothing is tried for ever. */
static void test_without_threads_the_keeper_ends(void **state)
{
	(void)state;
	nr_allowed = nr_refused = 0;
	assert_true(is_closed());
	assert_int_equal(nr_refused, LEAVER_FAILURES_MAX);
	assert_false(is_closed());
	nr_allowed = 1000;
}

/* Another thread of the parent may have the lock, and then nobody knows the descriptor. */
static void fork_here(int fd, const struct sockaddr *to, socklen_t length)
{
	pid_t child = fork();
	int status;

	(void)to;
	(void)length;
	if (!child)
		_exit(fcntl(fd, F_GETFD) < 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static void test_a_child_closes_no_number_that_it_may_not_know(void **state)
{
	(void)state;
	at_connect = fork_here;
	wait_for_new_keeper();
	assert_null(at_connect);
}

static void *give_first(void *took_one)
{
	*(_Atomic bool *)took_one = is_closed();
	return NULL;
}

/* The second caller comes while the first one waits. */
static void test_one_caller_alone_waits_for_a_keeper_that_is_late(void **state)
{
	_Atomic bool took_one = true;
	pthread_t first, late;

	(void)state;
	nr_refused = 0;
	is_late = true;
	nr_allowed = 1;
	assert_int_equal(pthread_create(&first, NULL, give_first, (void *)&took_one), 0);
	while (!nr_refused)
		usleep(1000);
	assert_false(is_closed());
	assert_true(took_one);
	is_over = true;
	pthread_join(first, NULL);
	assert_false(took_one);
	assert_int_equal(nr_refused, 1);
	is_late = false;
	nr_allowed = 1000;
	assert_int_equal(pthread_create(&late, NULL, late_start, late_arg), 0);
	pthread_join(late, NULL); /* finds that nobody needs it */
}

static void test_an_idle_process_has_no_threads(void **state)
{
	(void)state;
	wait_for_new_keeper();
	is_idle = true;
	while (count_threads() > nr_threads_at_start)
		usleep(1000);
	is_idle = false;
	assert_true(is_closed());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		/* In this order: the first and the third leave no keeper. */
		cmocka_unit_test(test_one_caller_alone_waits_for_a_keeper_that_is_late),
		cmocka_unit_test(test_strangers_that_see_a_name_change_nothing),
		cmocka_unit_test(test_without_threads_the_keeper_ends),
		cmocka_unit_test(test_a_child_closes_no_number_that_it_may_not_know),
		cmocka_unit_test(test_an_idle_process_has_no_threads),
	};

	note_threads_at_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
