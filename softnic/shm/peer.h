/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A peer: a process whose queue pairs this process uses, on the asking side.
 *
 * Connections are one-way: each side makes one to the other and asks on it. The end of the
 * connection means that the other process has ended.
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
	pthread_mutex_t send_lock; /* sending, and the unsent messages */
	struct unsent_msg *first, **last;
	uint32_t num_unsent;
	uint32_t users; /* queue pairs, and nic while it is listed */
	enum peer_state state;
	bool is_stuck; /* a copy waits for a page, and another engine thread has taken over */
	bool is_reachable; /* a way to copy was found; the engine thread sets it last */
	struct copy_target target;
	const struct shared_pub *pub;
	size_t pub_bytes; /* mapped; a peer of an earlier build has fewer */
	struct shared_doorbells *doorbell_page;
	struct waker *wakers; /* to the peer's channels; nic.lock */
	struct peer_map peer_map;
	pthread_mutex_t atomic_lock; /* between our threads */
	int atomic_fd; /* between processes: our own open file description of the peer's atomics */
	struct shm_peer *next;
};

/**
 * peer_get() - the process with that slot; connect if not yet connected
 * @slot: 1 to SOFTNIC_SLOTS - 1; may be our own
 * @peer: on success the caller owes one peer_put()
 *
 * The peer may be in any state: the caller may ask for a queue pair at once.
 *
 * Context: nic.lock held; does not block.
 * Return: 0, -ECONNREFUSED if no process has the slot, or another negative errno.
 */
int peer_get(uint32_t slot, struct shm_peer **peer);

/**
 * peer_put() - release a peer; the last release frees it
 *
 * Context: nic.lock held.
 */
void peer_put(struct shm_peer *peer);

/**
 * peer_find_ways() - look for ways to copy that need nothing from the peer
 *
 * Context: the engine thread. If there are none, copies fail.
 */
void peer_find_ways(struct shm_peer *peer);

/** peer_reset() - in the child of a fork, close the parent's connections */
void peer_reset(void);

/**
 * peer_send() - send a message to a peer
 *
 * Never blocks. If the socket is full, the engine sends the message later, in order, except a
 * MSG_ASK_QP. A peer that leaves very many messages unread is disconnected.
 *
 * Context: Any thread.
 * Return: 0, or a negative errno: the peer will not get the message.
 */
int peer_send(struct shm_peer *peer, const struct shm_msg *m);

/**
 * peer_send_bytes() - send a message with m->value bytes, which is lost if the socket is full
 *
 * Context: Any thread.
 */
void peer_send_bytes(struct shm_peer *peer, const struct shm_msg *m, const void *bytes);

/**
 * peer_atomic_lock() - become the only initiator of atomic operations on a peer
 *
 * Never waits long, so that a process stopped with the lock does not stop us. The kernel
 * releases the lock of a process that dies.
 *
 * Return: 0, -EAGAIN if another process holds the lock (try again later), or another negative
 * errno if locking fails for good.
 */
int peer_atomic_lock(struct shm_peer *peer);
void peer_atomic_unlock(struct shm_peer *peer);

#endif
