// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The descriptors that the engine watches. A number may be another's by the time that an event
 * for it is looked at, so each has a generation, which the event names too.
 */
#include <errno.h>
#include <stdlib.h>

#include "engine.h"

struct handler {
	int fd;
	uint32_t generation;
	void (*fn)(void *arg, uint32_t events);
	void *arg;
	struct handler *next;
};

static struct {
	uint32_t generation;
	struct handler *handlers;
} watch;

static struct handler **find(int fd)
{
	struct handler **h;

	for (h = &watch.handlers; *h && (*h)->fd != fd; h = &(*h)->next)
		;
	return h;
}

void watch_handle(const struct epoll_event *ev)
{
	int fd = (int)(uint32_t)ev->data.u64;
	uint32_t generation = ev->data.u64 >> 32;
	struct handler *h = *find(fd);
	void (*fn)(void *arg, uint32_t events);
	void *arg;

	if (!h || h->generation != generation)
		return;
	fn = h->fn;
	arg = h->arg;
	engine_run_begin(h);
	fn(arg, ev->events);
	engine_run_end();
}

int watch_add(int fd, uint32_t events, void (*fn)(void *arg, uint32_t events), void *arg)
{
	struct epoll_event ev = { .events = events };
	struct handler *h;
	int err;

	if (*find(fd))
		return -EEXIST;
	h = malloc(sizeof(*h));
	if (!h)
		return -ENOMEM;
	*h = (struct handler){ fd, ++watch.generation, fn, arg, watch.handlers };
	ev.data.u64 = (uint64_t)h->generation << 32 | (uint32_t)fd;
	if (epoll_ctl(engine.epoll, EPOLL_CTL_ADD, fd, &ev) < 0) {
		err = -errno;
		free(h);
		return err;
	}
	watch.handlers = h;
	return 0;
}

void watch_forget(void)
{
	struct handler *h;

	while ((h = watch.handlers)) {
		watch.handlers = h->next;
		free(h);
	}
}

int softnic_loop_add(int fd, uint32_t events, void (*fn)(void *arg, uint32_t events), void *arg)
{
	int err = softnic_loop_start();

	if (err)
		return err;
	pthread_mutex_lock(&engine.lock);
	err = watch_add(fd, events, fn, arg);
	pthread_mutex_unlock(&engine.lock);
	return err;
}

void softnic_loop_change(int fd, uint32_t events)
{
	struct epoll_event ev = { .events = events };
	struct handler *h;

	pthread_mutex_lock(&engine.lock);
	h = *find(fd);
	if (h) {
		ev.data.u64 = (uint64_t)h->generation << 32 | (uint32_t)fd;
		epoll_ctl(engine.epoll, EPOLL_CTL_MOD, fd, &ev);
	}
	pthread_mutex_unlock(&engine.lock);
}

void softnic_loop_del(int fd)
{
	struct handler **at, *h;

	pthread_mutex_lock(&engine.lock);
	at = find(fd);
	h = *at;
	if (h) {
		*at = h->next;
		epoll_ctl(engine.epoll, EPOLL_CTL_DEL, fd, NULL);
		engine_wait_for(h);
		free(h);
	}
	pthread_mutex_unlock(&engine.lock);
}
