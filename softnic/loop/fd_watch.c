// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The descriptors that the engine watches. A descriptor may be closed and its number reused before
 * the engine handles an event. So each handler has a generation, which its events carry.
 */
#include <errno.h>
#include <stdlib.h>

#include "engine.h"

struct fd_handler {
	int fd;
	uint32_t generation;
	void (*fn)(void *arg, uint32_t events);
	void *arg;
	struct fd_handler *next;
};

static struct {
	uint32_t generation;
	struct fd_handler *handlers;
} watch;

static struct fd_handler **find_handler(int fd)
{
	struct fd_handler **h;

	for (h = &watch.handlers; *h && (*h)->fd != fd; h = &(*h)->next)
		;
	return h;
}

void fd_watch_handle(const struct epoll_event *ev)
{
	int fd = (int)(uint32_t)ev->data.u64;
	uint32_t generation = ev->data.u64 >> 32;
	struct fd_handler *h = *find_handler(fd);
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

int fd_watch_add(int fd, uint32_t events, void (*fn)(void *arg, uint32_t events), void *arg)
{
	struct epoll_event ev = { .events = events };
	struct fd_handler *h;
	int rc;

	if (*find_handler(fd))
		return -EEXIST;
	h = malloc(sizeof(*h));
	if (!h)
		return -ENOMEM;
	*h = (struct fd_handler){ fd, ++watch.generation, fn, arg, watch.handlers };
	ev.data.u64 = (uint64_t)h->generation << 32 | (uint32_t)fd;
	if (epoll_ctl(engine.epoll, EPOLL_CTL_ADD, fd, &ev) < 0) {
		rc = -errno;
		free(h);
		return rc;
	}
	watch.handlers = h;
	return 0;
}

void fd_watch_reset(void)
{
	struct fd_handler *h;

	while ((h = watch.handlers)) {
		watch.handlers = h->next;
		free(h);
	}
}

int softnic_loop_add(int fd, uint32_t events, void (*fn)(void *arg, uint32_t events), void *arg)
{
	int rc = softnic_loop_start();

	if (rc)
		return rc;
	pthread_mutex_lock(&engine.lock);
	rc = fd_watch_add(fd, events, fn, arg);
	pthread_mutex_unlock(&engine.lock);
	return rc;
}

void softnic_loop_change(int fd, uint32_t events)
{
	struct epoll_event ev = { .events = events };
	struct fd_handler *h;

	pthread_mutex_lock(&engine.lock);
	h = *find_handler(fd);
	if (h) {
		ev.data.u64 = (uint64_t)h->generation << 32 | (uint32_t)fd;
		epoll_ctl(engine.epoll, EPOLL_CTL_MOD, fd, &ev);
	}
	pthread_mutex_unlock(&engine.lock);
}

void softnic_loop_del(int fd)
{
	struct fd_handler **at, *h;

	pthread_mutex_lock(&engine.lock);
	at = find_handler(fd);
	h = *at;
	if (h) {
		*at = h->next;
		epoll_ctl(engine.epoll, EPOLL_CTL_DEL, fd, NULL);
		engine_wait_for(h);
		free(h);
	}
	pthread_mutex_unlock(&engine.lock);
}
