// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The engine thread runs due timers and queued work, then waits for descriptors.
 *
 * On small machines the largest cost is waking a sleeping thread. So a kick writes the eventfd only
 * when the engine is asleep. One lock guards all lists, because the lists are short and kicks are
 * rare: most operations run in the posting thread.
 */
#include <errno.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "engine.h"
#include "fork.h"

struct engine engine = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.idle = PTHREAD_COND_INITIALIZER,
	.epoll = -1,
	.wake = -1,
};

static __thread bool is_engine;

uint64_t softnic_loop_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

void engine_wake(void)
{
	if (!engine.asleep)
		return;
	engine.asleep = false;
	eventfd_write(engine.wake, 1);
}

void engine_run_begin(const void *item)
{
	engine.running = item;
	pthread_mutex_unlock(&engine.lock);
}

void engine_run_end(void)
{
	pthread_mutex_lock(&engine.lock);
	engine.running = NULL;
	pthread_cond_broadcast(&engine.idle);
}

void engine_let_fork(void)
{
	while (engine.forking)
		pthread_cond_wait(&engine.idle, &engine.lock);
}

/* The engine thread itself is in its callback, and waits for nobody. */
void softnic_loop_fork_begin(void)
{
	if (is_engine)
		return;
	pthread_mutex_lock(&engine.lock);
	while (engine.running || engine.forking)
		pthread_cond_wait(&engine.idle, &engine.lock);
	engine.forking = true;
	pthread_mutex_unlock(&engine.lock);
}

void softnic_loop_fork_end(void)
{
	if (is_engine)
		return;
	pthread_mutex_lock(&engine.lock);
	engine.forking = false;
	pthread_cond_broadcast(&engine.idle);
	pthread_mutex_unlock(&engine.lock);
}

bool engine_runs(const void *item)
{
	return engine.running == item && !is_engine;
}

void engine_wait_for(const void *item)
{
	while (engine_runs(item))
		pthread_cond_wait(&engine.idle, &engine.lock);
}

static int wait_for_event(struct epoll_event *ev, int64_t ns)
{
	const struct timespec t = { ns / 1000000000, ns % 1000000000 };
	int n = epoll_pwait2(engine.epoll, ev, 1, ns < 0 ? NULL : &t, NULL);

	/* Linux before 5.11, or a seccomp filter, has no epoll_pwait2(). */
	if (n < 0 && (errno == ENOSYS || errno == EPERM))
		n = epoll_wait(engine.epoll, ev, 1, ns < 0 ? -1 : ns / 1000000 + !!(ns % 1000000));
	return n;
}

static void *engine_main(void *arg)
{
	struct epoll_event ev;
	int64_t ns;
	int n;

	is_engine = true;
	pthread_mutex_lock(&engine.lock);
	for (;;) {
		timer_run();
		ns = timer_idle_ns();
		engine.asleep = ns != 0;
		pthread_mutex_unlock(&engine.lock);
		n = wait_for_event(&ev, ns);
		pthread_mutex_lock(&engine.lock);
		engine.asleep = false;
		engine_let_fork();
		if (n == 1)
			fd_watch_handle(&ev);
	}
	return arg;
}

static void drain_wake(void *arg, uint32_t events)
{
	eventfd_t n;

	(void)arg;
	(void)events;
	eventfd_read(engine.wake, &n);
}

/* The program's signal handlers must not run on our thread. */
static int start_thread(void)
{
	sigset_t all, old;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = pthread_create(&engine.thread, NULL, engine_main, NULL);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (rc)
		return -rc;
	pthread_setname_np(engine.thread, "softnic");
	pthread_detach(engine.thread);
	return 0;
}

static void reset_engine(void)
{
	fd_watch_reset();
	timer_reset();
	if (engine.started) {
		close(engine.epoll);
		close(engine.wake);
	}
	engine.epoll = engine.wake = -1;
	engine.running = NULL;
	engine.started = engine.asleep = engine.forking = is_engine = false;
	pthread_cond_init(&engine.idle, NULL);
}

const struct fork_part loop_fork = { &engine.lock, reset_engine };

/* Under engine.lock. */
static int start_engine(void)
{
	int rc;

	engine.epoll = epoll_create1(EPOLL_CLOEXEC);
	if (engine.epoll < 0)
		return -errno;
	engine.wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (engine.wake < 0) {
		rc = -errno;
		goto close_epoll;
	}
	rc = fd_watch_add(engine.wake, EPOLLIN, drain_wake, NULL);
	if (rc)
		goto close_wake;
	rc = fork_register();
	if (!rc)
		rc = start_thread();
	if (rc)
		goto forget_wake;
	engine.started = true;
	return 0;

forget_wake:
	fd_watch_reset();
close_wake:
	close(engine.wake);
close_epoll:
	close(engine.epoll);
	engine.epoll = engine.wake = -1;
	return rc;
}

int softnic_loop_start(void)
{
	int rc;

	pthread_mutex_lock(&engine.lock);
	rc = engine.started ? 0 : start_engine();
	pthread_mutex_unlock(&engine.lock);
	return rc;
}
