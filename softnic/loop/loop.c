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
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "engine.h"
#include "fork.h"

struct engine engine = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.idle = PTHREAD_COND_INITIALIZER,
	.lead = PTHREAD_COND_INITIALIZER,
	.epoll = -1,
	.wake = -1,
};

static __thread struct engine_thread *self;

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

struct engine_thread *engine_self(void)
{
	return self;
}

bool engine_leads(void)
{
	return engine.leader == self;
}

void engine_run_begin(const void *item)
{
	self->running = item;
	pthread_mutex_unlock(&engine.lock);
}

void engine_run_end(void)
{
	pthread_mutex_lock(&engine.lock);
	self->running = NULL;
	pthread_cond_broadcast(&engine.idle);
}

void engine_let_fork(void)
{
	while (engine.forking)
		pthread_cond_wait(&engine.idle, &engine.lock);
}

/*
 * The engine thread itself is in its callback, and waits for nobody. A thread that has stalled and
 * lost the lead is waited for no longer: it copies, and holds no descriptor.
 */
void softnic_loop_fork_begin(void)
{
	if (self)
		return;
	pthread_mutex_lock(&engine.lock);
	while ((engine.leader && engine.leader->running) || engine.forking)
		pthread_cond_wait(&engine.idle, &engine.lock);
	engine.forking = true;
	pthread_mutex_unlock(&engine.lock);
}

void softnic_loop_fork_end(void)
{
	if (self)
		return;
	pthread_mutex_lock(&engine.lock);
	engine.forking = false;
	pthread_cond_broadcast(&engine.idle);
	pthread_mutex_unlock(&engine.lock);
}

bool engine_runs(const void *item)
{
	const struct engine_thread *t;

	for (t = engine.threads; t; t = t->next)
		if (t != self && t->running == item)
			return true;
	return false;
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

/* It never ends: peers take the end of the first thread for the end of the process. */
static void wait_to_lead(void)
{
	self->is_spare = true;
	while (!engine_leads())
		pthread_cond_wait(&engine.lead, &engine.lock);
	self->is_spare = false;
}

static void *engine_main(void *arg)
{
	struct epoll_event ev;
	int64_t ns;
	int n;

	self = arg;
	pthread_mutex_lock(&engine.lock);
	for (;;) {
		timer_run();
		if (!engine_leads()) {
			wait_to_lead();
			continue;
		}
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
int engine_start_thread(void *(*fn)(void *arg), void *arg, const char *name)
{
	pthread_t thread;
	sigset_t all, old;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = pthread_create(&thread, NULL, fn, arg);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (rc)
		return -rc;
	pthread_setname_np(thread, name);
	pthread_detach(thread);
	return 0;
}

static bool promote_spare(void)
{
	struct engine_thread *t;

	for (t = engine.threads; t; t = t->next) {
		if (t->is_spare) {
			engine.leader = t;
			pthread_cond_broadcast(&engine.lead);
			return true;
		}
	}
	return false;
}

/* The new leader begins once the caller unlocks. */
int engine_new_leader(void)
{
	struct engine_thread *t;
	int rc;

	if (promote_spare())
		return 0;
	t = calloc(1, sizeof(*t));
	if (!t)
		return -ENOMEM;
	rc = engine_start_thread(engine_main, t, "softnic");
	if (rc) {
		free(t);
		return rc;
	}
	t->next = engine.threads;
	engine.threads = engine.leader = t;
	return 0;
}

static void forget_threads(void)
{
	struct engine_thread *t;

	while ((t = engine.threads)) {
		engine.threads = t->next;
		free(t);
	}
	engine.leader = self = NULL;
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
	forget_threads();
	stall_reset();
	engine.started = engine.asleep = engine.forking = false;
	pthread_cond_init(&engine.idle, NULL);
	pthread_cond_init(&engine.lead, NULL);
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
		rc = engine_new_leader();
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
