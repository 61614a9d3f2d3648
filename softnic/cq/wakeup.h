/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How a peer wakes who sleeps at a completion channel of ours. Each that talks to us has a cord
 * of its own for each channel, a pair of sockets, and a pull is an empty datagram: so it can
 * lose, or make up, only its own pulls. What a pull is worth, the arms say: see line.h.
 */
#ifndef WEIR_SOFTNIC_CQ_WAKEUP_H
#define WEIR_SOFTNIC_CQ_WAKEUP_H

#include <stdbool.h>
#include <stdint.h>

struct bell;
struct channel;

/* The sleeper's side. */
struct cord {
	int fd;
	int far_fd;			/* to hand to its peer, as often as it asks */
	struct bell *bell;
	struct channel *channel;
	struct cord *next_of_bell;	/* nic.lock */
	struct cord *next_of_channel;	/* nic.lock */
};

/**
 * cord_get() - the cord of one that talks to us to that channel; makes it if it must
 * @cord: stays the bell's
 *
 * Context: nic.lock held; the channel's lock is taken.
 * Return: 0 or a negative errno.
 */
int cord_get(struct bell *bell, struct channel *channel, struct cord **cord);

/** cord_cut() - that one is not heard any more. nic.lock held; takes the channel's. */
void cord_cut(struct cord *cord);

/** cord_hear() - take what was pulled so far. The channel's lock held; never waits. */
void cord_hear(const struct cord *cord);

/* The peer's side: one for all queue pairs that are received from at the same channel. */
struct pull {
	uint64_t channel;
	int fd;
	uint32_t users;
	struct pull *next;
};

/**
 * pull_get() - the way to wake who sleeps at a peer's channel
 * @pulls: those of that peer
 * @channel: its number there
 * @fd: what it passed; taken, and set to -1, if it is the first to that channel
 * @pull: on success the caller owes one pull_put()
 *
 * Context: the lock of @pulls held.
 * Return: 0, -EPROTO if @fd is not what it should be, -ENOMEM.
 */
int pull_get(struct pull **pulls, uint64_t channel, int *fd, struct pull **pull);
void pull_put(struct pull **pulls, struct pull *pull);

/** pull_once() - wake them. Any thread; never waits, whatever is at the other end. */
void pull_once(const struct pull *pull);

#endif
