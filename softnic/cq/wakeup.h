/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How a peer wakes who sleeps at a completion channel of ours. Each that talks to us has a wakeup
 * of its own for each channel, a pair of sockets, and a pull is an empty datagram: so it can
 * lose, or make up, only its own pulls. What a pull is worth, the arms say: see doorbell.h.
 */
#ifndef WEIR_SOFTNIC_CQ_WAKEUP_H
#define WEIR_SOFTNIC_CQ_WAKEUP_H

#include <stdbool.h>
#include <stdint.h>

struct shm_doorbell_page;
struct comp_channel;

/* The sleeper's side. */
struct wakeup {
	int fd;
	int far_fd; /* to hand to its peer, as often as it asks */
	struct shm_doorbell_page *doorbell_page;
	struct comp_channel *channel;
	struct wakeup *next_of_page; /* nic.lock */
	struct wakeup *next_of_channel; /* nic.lock */
};

/**
 * wakeup_get() - the wakeup of one that talks to us to that channel; makes it if it must
 * @wakeup: stays the doorbell_page's
 *
 * Context: nic.lock held; the channel's lock is taken.
 * Return: 0 or a negative errno.
 */
int wakeup_get(struct shm_doorbell_page *doorbell_page, struct comp_channel *channel,
	       struct wakeup **wakeup);

/** wakeup_destroy() - that one is not heard any more. nic.lock held; takes the channel's. */
void wakeup_destroy(struct wakeup *wakeup);

/** wakeup_drain() - take what was pulled so far. The channel's lock held; never waits. */
void wakeup_drain(const struct wakeup *wakeup);

/* The peer's side: one for all queue pairs that are received from at the same channel. */
struct waker {
	uint64_t channel;
	int fd;
	uint32_t users;
	struct waker *next;
};

/**
 * waker_get() - the way to wake who sleeps at a peer's channel
 * @pulls: those of that peer
 * @channel: its number there
 * @fd: what it passed; taken, and set to -1, if it is the first to that channel
 * @pull: on success the caller owes one waker_put()
 *
 * Context: the lock of @pulls held.
 * Return: 0, -EPROTO if @fd is not what it should be, -ENOMEM.
 */
int waker_get(struct waker **pulls, uint64_t channel, int *fd, struct waker **pull);
void waker_put(struct waker **pulls, struct waker *pull);

/** waker_wake() - wake them. Any thread; never waits, whatever is at the other end. */
void waker_wake(const struct waker *pull);

#endif
