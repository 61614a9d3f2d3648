/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * This process as others see it: its slot on the host, its shared memory, its queue pairs.
 *
 * Locks, outermost first: nic.lock, qp->lock, the rest are leaves. What runs under a
 * qp->lock (the data path) never takes nic.lock.
 */
#ifndef WEIR_SOFTNIC_VERBS_NIC_H
#define WEIR_SOFTNIC_VERBS_NIC_H

#include <pthread.h>

#include "softnic/shm/copy.h"

enum { NIC_QPS = 1 << SOFTNIC_QP_INDEX_BITS };

struct qp;

struct softnic_nic {
	pthread_mutex_t lock;
	pthread_cond_t released; /* a qp lost a user */
	bool is_open; /* not in a child of ours, until it opens for itself */
	bool lives; /* pub->life has begun; the engine's */
	bool is_admitted; /* a peer, since it was opened */
	uint32_t slot;
	int pub_fd, doorbell_fd, mem_fd, listen_fd;
	struct shared_pub *pub;
	struct shared_doorbells *doorbell_page;
	uint64_t nonce; /* peers read it to prove that they can reach us */
	struct copy_target self; /* where the kernel says what a store would do */
	struct qp *qps[NIC_QPS];
	uint32_t next_qp;
};

extern struct softnic_nic nic;

/**
 * nic_open() - claim a slot and be reachable, once a process
 *
 * Return: 0 or a negative errno: -EUSERS if all slots of this user are taken.
 */
int nic_open(void);

/**
 * nic_allow_attach() - a peer is about to reach our memory
 *
 * Where Yama would forbid cross-memory attach, and this process can allow it to everybody or
 * to nobody, it does so now: not before a program has connected to somebody.
 *
 * Context: nic.lock held.
 */
void nic_allow_attach(void);

/** nic_add_qp() - give a queue pair its number; nic.lock held. 0 or -ENOMEM. */
int nic_add_qp(struct qp *qp, uint32_t *qpn);

/** nic_del_qp() - take it out of the table and wait until nic_next_qp() let go of it */
void nic_del_qp(struct qp *qp, uint32_t qpn);

/** nic_qp() - the queue pair of a number, or NULL; nic.lock held */
struct qp *nic_qp(uint32_t qpn);

/**
 * nic_next_qp() - walk all queue pairs without keeping nic.lock
 * @prev: what the last call returned, NULL to begin with
 *
 * Return: the next one, which cannot be destroyed until the following call, or NULL.
 */
struct qp *nic_next_qp(struct qp *prev);

/* Count in the public segment. */
#define count(field, n) __atomic_fetch_add(&nic.pub->counters.field, n, __ATOMIC_RELAXED)

#endif
