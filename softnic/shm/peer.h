/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A process whose queue pairs ours talk to, seen from the asking side.
 *
 * Links are one-way: each side connects for itself to learn what it needs, and learns
 * from the end of that connection that the other process has ended.
 */
#ifndef WEIR_SOFTNIC_SHM_PEER_H
#define WEIR_SOFTNIC_SHM_PEER_H

#include <pthread.h>

#include "copy.h"
#include "softnic/cq/wakeup.h"
#include "peer_map.h"
#include "shared.h"

enum peer_state { PEER_ASKED, PEER_READY, PEER_DEAD };

struct shm_peer {
	uint32_t slot;
	int fd; /* the connection */
	pthread_mutex_t send_lock; /* sending, and what could not be sent yet */
	struct unsent_msg *first, **last;
	uint32_t num_unsent;
	uint32_t users; /* queue pairs, and nic while it is listed */
	enum peer_state state;
	bool is_reachable; /* a way to its memory was found; the engine's */
	struct copy_target target;
	const struct shared_pub *pub;
	struct shared_doorbells *doorbell_page;
	struct waker *wakers; /* to its channels; nic.lock */
	struct peer_map peer_map;
	pthread_mutex_t atomic_lock; /* among our threads */
	int atomic_fd; /* among processes: an own description of its pub */
	struct shm_peer *next;
};

/**
 * peer_get() - the process that has a slot; connects if it is not connected yet
 * @slot: 1 to SOFTNIC_SLOTS - 1; may be our own
 * @peer: on success the caller owes one peer_put()
 *
 * It may be in any state: asking a queue pair of it is possible at once.
 *
 * Context: nic.lock held; does not block.
 * Return: 0, -ECONNREFUSED if there is none, or another negative errno.
 */
int peer_get(uint32_t slot, struct shm_peer **peer);

/** peer_put() - forget about it. Context: nic.lock held. */
void peer_put(struct shm_peer *peer);

/** peer_reset() - after a fork, in the child: they are the parent's peers */
void peer_reset(void);

/**
 * peer_send() - send it a message
 *
 * Never blocks. What the socket has no room for is sent by the engine later, in order,
 * but for a MSG_ASK_QP; a peer that reads nothing of very many messages is cut off.
 *
 * Context: Any thread.
 * Return: 0, or a negative errno: it will not get the message.
 */
int peer_send(struct shm_peer *peer, const struct shm_msg *m);

/**
 * peer_atomic_lock() - be the only initiator that does an atomic operation there
 *
 * Never waits for another process for long: one that is stopped while it holds the lock
 * must not stop us as well. One that dies with it gives it back.
 *
 * Return: 0, -EAGAIN if someone else has it: try again later, or another negative errno: it cannot
 * be had at all.
 */
int peer_atomic_lock(struct shm_peer *peer);
void peer_atomic_unlock(struct shm_peer *peer);

#endif
