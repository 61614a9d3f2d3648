// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * While no CQ is armed, the channel does not listen to wakeups, so that a late or needless one
 * does not wake the program. Switching takes one system call: with more than one wakeup, a
 * second epoll stands for all of them.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "comp_channel.h"
#include "wakeup.h"
#include "cq.h"

static int watch(int epoll, int op, int fd, uint32_t source, bool on)
{
	struct epoll_event e = {
		/*
		 * The first thread to see a wakeup drains it, and then decides whether to
		 * listen on.
		 */
		.events = on ? EPOLLIN | (source == CHANNEL_WAKEUPS ? EPOLLONESHOT : 0) : 0,
		.data.u32 = source,
	};

	return epoll_ctl(epoll, op, fd, &e);
}

int comp_channel_init(struct comp_channel *c)
{
	c->ibv.fd = epoll_create1(EPOLL_CLOEXEC);
	if (c->ibv.fd < 0)
		return -errno;
	c->ready_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (c->ready_fd < 0 || watch(c->ibv.fd, EPOLL_CTL_ADD, c->ready_fd, CHANNEL_READY, true)) {
		int rc = -errno;

		if (c->ready_fd >= 0)
			close(c->ready_fd);
		close(c->ibv.fd);
		return rc;
	}
	c->wakeups_fd = -1;
	c->last_fired = &c->first_fired;
	pthread_mutex_init(&c->lock, NULL);
	return 0;
}

void comp_channel_fini(struct comp_channel *c)
{
	if (c->wakeups_fd >= 0)
		close(c->wakeups_fd);
	close(c->ready_fd);
	close(c->ibv.fd);
	pthread_mutex_destroy(&c->lock);
}

/* Under the channel's lock, as all functions below. */
static void show_ready(struct comp_channel *c)
{
	eventfd_t n;

	if (c->first_fired && !c->is_ready)
		eventfd_write(c->ready_fd, 1);
	else if (!c->first_fired && c->is_ready)
		eventfd_read(c->ready_fd, &n);
	c->is_ready = c->first_fired;
}

static bool has_cords(const struct comp_channel *c)
{
	return c->only || c->wakeups_fd >= 0;
}

static int fd_of_cords(const struct comp_channel *c)
{
	return c->only ? c->only->fd : c->wakeups_fd;
}

static void listen_to_cords(struct comp_channel *c, bool on)
{
	if (!has_cords(c) || on == c->listens)
		return;
	watch(c->ibv.fd, EPOLL_CTL_MOD, fd_of_cords(c), CHANNEL_WAKEUPS, on);
	c->listens = on;
	c->began += on;
}

static bool is_armed(const struct cq *cq)
{
	return load_ordered(&cq->armed) != ARMED_NOT;
}

static bool has_armed(const struct comp_channel *c)
{
	const struct cq *cq;

	for (cq = c->cqs; cq; cq = cq->next_in_channel)
		if (is_armed(cq))
			return true;
	return false;
}

static void put_last(struct comp_channel *c, struct cq *cq)
{
	cq->next_fired = NULL;
	*c->last_fired = cq;
	c->last_fired = &cq->next_fired;
}

static void unlink_fired(struct comp_channel *c, struct cq *cq)
{
	struct cq **at = &c->first_fired;

	while (*at != cq)
		at = &(*at)->next_fired;
	*at = cq->next_fired;
	if (!*at)
		c->last_fired = at;
}

static void append(struct comp_channel *c, struct cq *cq)
{
	if (!cq->fired++)
		put_last(c, cq);
}

static void hear_pulled(int wakeups_fd)
{
	struct epoll_event pulled[16];
	int i, n = epoll_wait(wakeups_fd, pulled, sizeof(pulled) / sizeof(pulled[0]), 0);

	for (i = 0; i < n; i++)
		wakeup_drain(pulled[i].data.ptr);
}

/* A wakeup does not name a CQ; the armed flags tell which CQs were rung. */
static void hear_cords(struct comp_channel *c)
{
	struct cq *cq;

	if (c->only)
		wakeup_drain(c->only);
	else if (c->wakeups_fd >= 0)
		hear_pulled(c->wakeups_fd);
	for (cq = c->cqs; cq; cq = cq->next_in_channel)
		if (is_armed(cq) && doorbell_was_rung(cq))
			append(c, cq);
}

/* Make an event for a wakeup that came late, after its CQ was disarmed, or that a peer forged. */
static void make_event(struct comp_channel *c)
{
	struct cq *cq;

	for (cq = c->cqs; cq && !c->first_fired; cq = cq->next_in_channel)
		if (doorbell_disarm(cq))
			append(c, cq);
}

/* CQs take turns, so that a busy CQ does not starve the others. */
static struct cq *take_first(struct comp_channel *c)
{
	struct cq *cq = c->first_fired;

	if (!cq)
		return NULL;
	unlink_fired(c, cq);
	if (--cq->fired)
		put_last(c, cq);
	return cq;
}

/* Undo what a thread that no longer waits left behind: show the channel's true state. */
static void show_all(struct comp_channel *c)
{
	show_ready(c);
	listen_to_cords(c, has_cords(c) && has_armed(c));
}

void comp_channel_add(struct comp_channel *c, struct cq *cq)
{
	pthread_mutex_lock(&c->lock);
	cq->next_in_channel = c->cqs;
	c->cqs = cq;
	c->ibv.refcnt++;
	pthread_mutex_unlock(&c->lock);
}

void comp_channel_del(struct comp_channel *c, struct cq *cq)
{
	struct cq **at;

	pthread_mutex_lock(&c->lock);
	for (at = &c->cqs; *at != cq; at = &(*at)->next_in_channel)
		;
	*at = cq->next_in_channel;
	c->ibv.refcnt--;
	if (cq->fired)
		unlink_fired(c, cq);
	show_all(c);
	pthread_mutex_unlock(&c->lock);
}

void comp_channel_arm(struct comp_channel *c, struct cq *cq, uint32_t how)
{
	pthread_mutex_lock(&c->lock);
	if (has_cords(c) && is_armed(cq))
		hear_cords(c); /* a ring for the last arm still makes its own event */
	listen_to_cords(c, true);
	if (doorbell_arm(cq, how))
		append(c, cq);
	show_ready(c);
	pthread_mutex_unlock(&c->lock);
}

void comp_channel_fire(struct comp_channel *c, struct cq *cq)
{
	pthread_mutex_lock(&c->lock);
	append(c, cq);
	c->is_ready = false; /* an edge-triggered poller gets an edge for each event */
	show_ready(c);
	pthread_mutex_unlock(&c->lock);
}

static int add_to_cords(int wakeups_fd, struct wakeup *wakeup)
{
	struct epoll_event e = { .events = EPOLLIN, .data.ptr = wakeup };

	return epoll_ctl(wakeups_fd, EPOLL_CTL_ADD, wakeup->fd, &e);
}

/* Replace the only wakeup by an epoll that holds several. */
static int expect_others(struct comp_channel *c)
{
	int fd = epoll_create1(EPOLL_CLOEXEC);

	if (fd < 0)
		return -1;
	if (add_to_cords(fd, c->only) ||
	    watch(c->ibv.fd, EPOLL_CTL_ADD, fd, CHANNEL_WAKEUPS, c->listens)) {
		close(fd);
		return -1;
	}
	epoll_ctl(c->ibv.fd, EPOLL_CTL_DEL, c->only->fd, NULL);
	c->only = NULL;
	c->wakeups_fd = fd;
	c->began++;
	return 0;
}

static int watch_cord(struct comp_channel *c, struct wakeup *wakeup)
{
	if (!has_cords(c)) {
		if (watch(c->ibv.fd, EPOLL_CTL_ADD, wakeup->fd, CHANNEL_WAKEUPS, false))
			return -1;
		c->only = wakeup;
		c->listens = false;
		listen_to_cords(c, has_armed(c));
		return 0;
	}
	if (c->only && expect_others(c))
		return -1;
	return add_to_cords(c->wakeups_fd, wakeup);
}

int comp_channel_watch(struct comp_channel *c, struct wakeup *wakeup)
{
	int rc;

	pthread_mutex_lock(&c->lock);
	rc = watch_cord(c, wakeup) ? -errno : 0;
	pthread_mutex_unlock(&c->lock);
	return rc;
}

void comp_channel_unwatch(struct comp_channel *c, struct wakeup *wakeup)
{
	pthread_mutex_lock(&c->lock);
	epoll_ctl(c->only ? c->ibv.fd : c->wakeups_fd, EPOLL_CTL_DEL, wakeup->fd, NULL);
	c->only = NULL;
	pthread_mutex_unlock(&c->lock);
}

struct cq *comp_channel_take(struct comp_channel *c, struct comp_channel_news *news)
{
	struct cq *cq;

	pthread_mutex_lock(&c->lock);
	if (news->pulled) {
		/*
		 * EPOLLONESHOT has disabled the source, unless another thread listened again
		 * since.
		 */
		if (c->began != news->began)
			watch(c->ibv.fd, EPOLL_CTL_MOD, fd_of_cords(c), CHANNEL_WAKEUPS, false);
		c->listens = false;
		hear_cords(c);
		make_event(c);
	}
	cq = take_first(c);
	if (cq) {
		pthread_mutex_lock(&cq->ibv.mutex);
		cq->events_delivered++;
		pthread_mutex_unlock(&cq->ibv.mutex);
	}
	show_all(c);
	*news = (struct comp_channel_news){ .began = c->began };
	pthread_mutex_unlock(&c->lock);
	return cq;
}
