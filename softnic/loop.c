// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The engine thread: epoll, timers, and a queue of work that takes turns.
 *
 * Waking a sleeping thread is what costs most on small machines, so a kick writes the
 * eventfd only when the engine said it would sleep, and one lock guards all its lists:
 * they are short, and a kick comes only when an operation could not be done in place.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "fork.h"
#include "loop.h"

struct handler {
	int fd;
	uint32_t generation;
	void (*fn)(void *arg, uint32_t events);
	void *arg;
	struct handler *next;
};

static struct {
	pthread_mutex_t lock;
	pthread_cond_t idle;	/* the running item changed */
	bool started, asleep;
	pthread_t thread;
	int epoll, wake;
	uint32_t generation;
	struct handler *handlers;
	struct softnic_timer *timers;		/* by deadline */
	struct softnic_work *first, **last;
	const void *running;			/* handler, timer or work being called */
} loop = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.idle = PTHREAD_COND_INITIALIZER,
	.epoll = -1,
	.wake = -1,
	.last = &loop.first,
};

static __thread bool is_engine;

uint64_t softnic_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

bool softnic_loop_is_here(void)
{
	return is_engine;
}

/* Under loop.lock. */
static void wake(void)
{
	if (!loop.asleep)
		return;
	loop.asleep = false;
	eventfd_write(loop.wake, 1);
}

/* Under loop.lock, dropped for the call. */
static void run_begin(const void *item)
{
	loop.running = item;
	pthread_mutex_unlock(&loop.lock);
}

static void run_end(void)
{
	pthread_mutex_lock(&loop.lock);
	loop.running = NULL;
	pthread_cond_broadcast(&loop.idle);
}

/* Under loop.lock. */
static void wait_until_not_running(const void *item)
{
	while (loop.running == item && !is_engine)
		pthread_cond_wait(&loop.idle, &loop.lock);
}

static struct handler **handler_find(int fd)
{
	struct handler **h;

	for (h = &loop.handlers; *h && (*h)->fd != fd; h = &(*h)->next)
		;
	return h;
}

static void handle(const struct epoll_event *ev)
{
	int fd = (int)(uint32_t)ev->data.u64;
	uint32_t generation = ev->data.u64 >> 32;
	struct handler *h = *handler_find(fd);
	void (*fn)(void *arg, uint32_t events);
	void *arg;

	if (!h || h->generation != generation)
		return;
	fn = h->fn;
	arg = h->arg;
	run_begin(h);
	fn(arg, ev->events);
	run_end();
}

static void run_timers(void)
{
	uint64_t now_ns = softnic_now_ns();

	while (loop.timers && loop.timers->deadline_ns <= now_ns) {
		struct softnic_timer *t = loop.timers;
		void (*fn)(struct softnic_timer *t) = t->fn;

		loop.timers = t->next;
		t->armed = false;
		run_begin(t);
		fn(t);
		run_end();
	}
}

static void work_append(struct softnic_work *w)
{
	w->queued = true;
	w->next = NULL;
	*loop.last = w;
	loop.last = &w->next;
}

static void run_one_work(void)
{
	struct softnic_work *w = loop.first;
	bool more;

	loop.first = w->next;
	if (!loop.first)
		loop.last = &loop.first;
	w->queued = false;
	run_begin(w);
	more = w->fn(w);
	pthread_mutex_lock(&loop.lock);
	if ((more || w->again) && !w->queued)
		work_append(w);
	w->again = false;
	loop.running = NULL;
	pthread_cond_broadcast(&loop.idle);
}

/* How long there is nothing to do: 0 if there is something, -1 if no end is known. */
static int64_t idle_ns(void)
{
	uint64_t now_ns;

	if (loop.first)
		return 0;
	if (!loop.timers)
		return -1;
	now_ns = softnic_now_ns();
	return loop.timers->deadline_ns > now_ns ? loop.timers->deadline_ns - now_ns : 0;
}

static int wait_for_event(struct epoll_event *ev, int64_t ns)
{
	const struct timespec t = { ns / 1000000000, ns % 1000000000 };
	int n = epoll_pwait2(loop.epoll, ev, 1, ns < 0 ? NULL : &t, NULL);

	/* Before Linux 5.11, and where a filter does not know it. */
	if (n < 0 && (errno == ENOSYS || errno == EPERM))
		n = epoll_wait(loop.epoll, ev, 1, ns < 0 ? -1 : ns / 1000000 + !!(ns % 1000000));
	return n;
}

/* Descriptors wait while there is work, but no longer than this many steps. */
enum { STEPS_BETWEEN_POLLS = 16 };

static void *engine(void *arg)
{
	struct epoll_event ev;
	int64_t ns;
	int i, n;

	is_engine = true;
	pthread_mutex_lock(&loop.lock);
	for (;;) {
		run_timers();
		for (i = 0; i < STEPS_BETWEEN_POLLS && loop.first; i++)
			run_one_work();
		ns = idle_ns();
		loop.asleep = ns != 0;
		pthread_mutex_unlock(&loop.lock);
		n = wait_for_event(&ev, ns);
		pthread_mutex_lock(&loop.lock);
		loop.asleep = false;
		if (n == 1)
			handle(&ev);
	}
	return arg;
}

static void drain_wake(void *arg, uint32_t events)
{
	eventfd_t n;

	(void)arg;
	(void)events;
	eventfd_read(loop.wake, &n);
}

/* The program's signal handlers must not run on our thread. */
static int start_thread(void)
{
	sigset_t all, old;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&loop.thread, NULL, engine, NULL);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (err)
		return -err;
	pthread_setname_np(loop.thread, "softnic");
	pthread_detach(loop.thread);
	return 0;
}

/* Under loop.lock. */
static int add(int fd, uint32_t events, void (*fn)(void *arg, uint32_t events), void *arg)
{
	struct epoll_event ev = { .events = events };
	struct handler *h;
	int err;

	if (*handler_find(fd))
		return -EEXIST;
	h = malloc(sizeof(*h));
	if (!h)
		return -ENOMEM;
	*h = (struct handler){ fd, ++loop.generation, fn, arg, loop.handlers };
	ev.data.u64 = (uint64_t)h->generation << 32 | (uint32_t)fd;
	if (epoll_ctl(loop.epoll, EPOLL_CTL_ADD, fd, &ev) < 0) {
		err = -errno;
		free(h);
		return err;
	}
	loop.handlers = h;
	return 0;
}

/* Timers and work that outlive this must not believe that they are still in a list. */
static void forget(void)
{
	struct softnic_timer *t;
	struct softnic_work *w;
	struct handler *h;

	while ((h = loop.handlers)) {
		loop.handlers = h->next;
		free(h);
	}
	for (t = loop.timers; t; t = t->next)
		t->armed = false;
	for (w = loop.first; w; w = w->next)
		w->queued = false;
	if (loop.started) {
		close(loop.epoll);
		close(loop.wake);
	}
	loop.epoll = loop.wake = -1;
	loop.timers = NULL;
	loop.first = NULL;
	loop.last = &loop.first;
	loop.running = NULL;
	loop.started = loop.asleep = is_engine = false;
	pthread_cond_init(&loop.idle, NULL);
}

const struct fork_part loop_fork = { &loop.lock, forget };

/* Under loop.lock. */
static int start(void)
{
	struct handler *waker;
	int err;

	loop.epoll = epoll_create1(EPOLL_CLOEXEC);
	if (loop.epoll < 0)
		return -errno;
	loop.wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (loop.wake < 0) {
		err = -errno;
		goto close_epoll;
	}
	err = add(loop.wake, EPOLLIN, drain_wake, NULL);
	if (err)
		goto close_wake;
	err = fork_watch();
	if (!err)
		err = start_thread();
	if (err)
		goto forget_wake;
	loop.started = true;
	return 0;

forget_wake:
	waker = loop.handlers;
	loop.handlers = waker->next;
	free(waker);
close_wake:
	close(loop.wake);
close_epoll:
	close(loop.epoll);
	loop.epoll = loop.wake = -1;
	return err;
}

int softnic_loop_start(void)
{
	int err;

	pthread_mutex_lock(&loop.lock);
	err = loop.started ? 0 : start();
	pthread_mutex_unlock(&loop.lock);
	return err;
}

int softnic_loop_add(int fd, uint32_t events, void (*fn)(void *arg, uint32_t events), void *arg)
{
	int err = softnic_loop_start();

	if (err)
		return err;
	pthread_mutex_lock(&loop.lock);
	err = add(fd, events, fn, arg);
	pthread_mutex_unlock(&loop.lock);
	return err;
}

void softnic_loop_change(int fd, uint32_t events)
{
	struct epoll_event ev = { .events = events };
	struct handler *h;

	pthread_mutex_lock(&loop.lock);
	h = *handler_find(fd);
	if (h) {
		ev.data.u64 = (uint64_t)h->generation << 32 | (uint32_t)fd;
		epoll_ctl(loop.epoll, EPOLL_CTL_MOD, fd, &ev);
	}
	pthread_mutex_unlock(&loop.lock);
}

void softnic_loop_del(int fd)
{
	struct handler **at, *h;

	pthread_mutex_lock(&loop.lock);
	at = handler_find(fd);
	h = *at;
	if (h) {
		*at = h->next;
		epoll_ctl(loop.epoll, EPOLL_CTL_DEL, fd, NULL);
		wait_until_not_running(h);
		free(h);
	}
	pthread_mutex_unlock(&loop.lock);
}

/* Under loop.lock. */
static void timer_remove(struct softnic_timer *t)
{
	struct softnic_timer **at = &loop.timers;

	if (!t->armed)
		return;
	while (*at != t)
		at = &(*at)->next;
	*at = t->next;
	t->armed = false;
}

void softnic_timer_arm(struct softnic_timer *t, uint64_t delay_ns,
		       void (*fn)(struct softnic_timer *t))
{
	uint64_t deadline_ns = softnic_now_ns() + delay_ns;
	struct softnic_timer **at;

	pthread_mutex_lock(&loop.lock);
	timer_remove(t);
	for (at = &loop.timers; *at && (*at)->deadline_ns <= deadline_ns; at = &(*at)->next)
		;
	t->fn = fn;
	t->deadline_ns = deadline_ns;
	t->next = *at;
	t->armed = true;
	*at = t;
	if (loop.timers == t)
		wake();
	pthread_mutex_unlock(&loop.lock);
}

void softnic_timer_disarm(struct softnic_timer *t)
{
	pthread_mutex_lock(&loop.lock);
	timer_remove(t);
	while (loop.running == t && !is_engine) {
		wait_until_not_running(t);
		timer_remove(t);
	}
	pthread_mutex_unlock(&loop.lock);
}

void softnic_work_kick(struct softnic_work *w)
{
	pthread_mutex_lock(&loop.lock);
	if (loop.running == w) {
		w->again = true;
	} else if (!w->queued) {
		work_append(w);
		wake();
	}
	pthread_mutex_unlock(&loop.lock);
}

static void work_remove(struct softnic_work *w)
{
	struct softnic_work **at = &loop.first;

	if (!w->queued)
		return;
	while (*at != w)
		at = &(*at)->next;
	*at = w->next;
	if (!*at)
		loop.last = at;
	w->queued = false;
}

void softnic_work_cancel(struct softnic_work *w)
{
	pthread_mutex_lock(&loop.lock);
	w->again = false;
	work_remove(w);
	while (loop.running == w && !is_engine) {
		wait_until_not_running(w);
		work_remove(w);
	}
	pthread_mutex_unlock(&loop.lock);
}
