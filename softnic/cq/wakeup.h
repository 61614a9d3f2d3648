/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How a peer wakes a thread that sleeps at our completion channel.
 *
 * Each client has one wakeup, a socket pair, for each of our channels. A wakeup is an empty
 * datagram, so a client can suppress or forge only its own. The armed flags decide whether a
 * wakeup is worth an event: see doorbell.h.
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
	int far_fd; /* passed to the client each time it asks */
	struct shm_doorbell_page *doorbell_page;
	struct comp_channel *channel;
	struct wakeup *next_of_page; /* nic.lock */
	struct wakeup *next_of_channel; /* nic.lock */
};

/**
 * wakeup_get() - find or create the wakeup of a client for a channel
 * @wakeup: owned by @doorbell_page
 *
 * Context: nic.lock held; takes the channel's lock.
 * Return: 0 or a negative errno.
 */
int wakeup_get(struct shm_doorbell_page *doorbell_page, struct comp_channel *channel,
	       struct wakeup **wakeup);

/**
 * wakeup_destroy() - stop listening to a wakeup and free it
 *
 * Context: nic.lock held; takes the channel's lock.
 */
void wakeup_destroy(struct wakeup *wakeup);

/**
 * wakeup_drain() - receive all datagrams; never blocks
 *
 * Context: The channel's lock held.
 */
void wakeup_drain(const struct wakeup *wakeup);

/* The peer's side: one for all queue pairs whose receives complete at the same channel. */
struct waker {
	uint64_t channel;
	int fd;
	uint32_t users;
	struct waker *next;
};

/**
 * waker_get() - find or add the socket that wakes sleepers at a peer's channel
 * @wakers: the wakers of that peer
 * @channel: the peer's number for the channel
 * @fd: the descriptor the peer passed; taken and set to -1 if it is the channel's first
 * @waker: on success the caller owes one waker_put()
 *
 * Context: The lock of @wakers held.
 * Return: 0, -EPROTO if @fd is no datagram socket, -ENOMEM.
 */
int waker_get(struct waker **wakers, uint64_t channel, int *fd, struct waker **waker);
void waker_put(struct waker **wakers, struct waker *waker);

/**
 * waker_wake() - wake the sleepers; never blocks
 *
 * Context: Any thread.
 */
void waker_wake(const struct waker *waker);

#endif
