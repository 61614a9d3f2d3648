/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The public state of this process: its slot on the host, its shared memory, its queue pairs.
 *
 * Locks, outermost first: nic.lock, qp->lock; the others are leaves. The data path, under
 * qp->lock, never takes nic.lock.
 */
#ifndef WEIR_SOFTNIC_VERBS_NIC_H
#define WEIR_SOFTNIC_VERBS_NIC_H

#include <pthread.h>

#include "softnic/shm/copy.h"

enum { NIC_QPS = SHARED_QPS };

struct qp;

struct softnic_nic {
	pthread_mutex_t lock;
	pthread_cond_t released; /* a queue pair lost a user */
	bool is_open; /* in the child of a fork false until the child opens a device */
	bool lives; /* pub->life has begun; engine thread only */
	bool is_admitted; /* nic_allow_attach() was called since opening */
	uint32_t slot;
	int pub_fd, doorbell_fd, mem_fd, listen_fd;
	int atomics_fd; /* its lock makes atomics on our memory atomic */
	struct shared_pub *pub;
	struct shared_doorbells *doorbell_page;
	uint64_t nonce; /* read by peers to prove access to our memory */
	struct copy_target self; /* our memory, for copies by the kernel that report faults */
	struct qp *qps[NIC_QPS];
	uint32_t next_qp;
};

extern struct softnic_nic nic;

/**
 * nic_open() - claim a slot and accept peers, once per process
 *
 * Return: 0 or a negative errno; -EUSERS if all slots of this user are taken.
 */
int nic_open(void);

/**
 * nic_allow_attach() - allow peers to access our memory
 *
 * Yama may forbid cross-memory attach, and a process can allow either all processes or none. So
 * the permission is given only when the first peer is about to connect.
 *
 * Context: nic.lock held.
 */
void nic_allow_attach(void);

/**
 * nic_note_pages_on_demand() - from now on a region names pages that nobody has checked
 *
 * Copies to and from this process then respect the protection of pages, and report missing ones.
 * It stays so: a few more copies by slower calls are all that it costs.
 */
void nic_note_pages_on_demand(void);

/** nic_add_qp() - assign a QP number; nic.lock held; 0 or -ENOMEM */
int nic_add_qp(struct qp *qp, uint32_t *qpn);

/** nic_del_qp() - remove a queue pair from the table, and wait for walks that use it */
void nic_del_qp(struct qp *qp, uint32_t qpn);

/** nic_qp() - find a queue pair by number, or NULL; nic.lock held */
struct qp *nic_qp(uint32_t qpn);

/**
 * nic_next_qp() - walk all queue pairs without keeping nic.lock
 * @prev: the result of the last call, or NULL to begin
 *
 * Return: the next queue pair, which cannot be destroyed before the following call, or NULL.
 */
struct qp *nic_next_qp(struct qp *prev);

/* Add to a counter in the public segment. */
#define count(field, n) __atomic_fetch_add(&nic.pub->counters.field, n, __ATOMIC_RELAXED)

#endif
