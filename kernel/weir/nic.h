/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A device, and the state shared by all its sessions: one lock, one window, one inbox (see
 * core/base/combine.h for the protocol).
 *
 * A submitter pushes, and serves unless another thread serves already. A thread that takes the lock
 * for another reason first takes the pushed requests, and serves when releasing the lock.
 * Completions are delivered without the lock and never by a submitter, so a callback may submit
 * again.
 */
#ifndef WEIR_KERNEL_WEIR_NIC_H
#define WEIR_KERNEL_WEIR_NIC_H

#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include <rdma/ib_verbs.h>

#include "core/engine/engine.h"
#include "kernel/weir/weir.h"

/* For all work that ios depend on; no such work allocates or waits for memory. */
extern struct workqueue_struct *kweir_wq;

/**
 * struct kweir_nic - one device
 * @entry: in the list of all NICs; @users: sessions on this NIC. Guarded by a mutex of nic.c's
 * @pd: for all our objects; NULL when the device is gone and its sessions are lost
 * @sge_max: SGEs in a WR
 * @rd_atomic: reads in flight on a QP
 * @sessions: the sessions on this NIC
 * @lock: guards all members below, and the members that session.h names
 * @combine: pushed ios, and sessions that may have WRs to post
 * @done: ios to complete, by @deliver
 * @chain: scratch of kweir_link_post()
 */
struct kweir_nic {
	struct list_head entry;
	unsigned int users;
	struct ib_device *device;
	struct ib_pd *pd;
	u8 sge_max;
	u8 rd_atomic;
	struct list_head sessions;

	spinlock_t lock;
	struct weir_window window;
	struct weir_combine combine;
	struct weir_list done;
	struct work_struct deliver;
	struct ib_rdma_wr chain[WEIR_BATCH_MAX];
};

/* Finds or makes the NIC of @device, for @session. Context: process; sleeps. */
int kweir_nic_get(struct ib_device *device, struct kweir_session *session, u64 window_bytes,
		  struct kweir_nic **nic);
void kweir_nic_put(struct kweir_nic *nic, struct kweir_session *session);

/* Takes the lock, and all pushed requests. Context: any but hard interrupts. */
void kweir_nic_lock(struct kweir_nic *nic) __acquires(&nic->lock);

/* Releases the lock; serves while there is work and no other thread does. */
void kweir_nic_unlock(struct kweir_nic *nic) __releases(&nic->lock);

/* As kweir_nic_unlock(), and completes finished ios. Context: process. */
void kweir_nic_unlock_and_complete(struct kweir_nic *nic) __releases(&nic->lock);

/* Pushes an io, and serves unless another thread does. Context: any but hard interrupts. */
void kweir_nic_push(struct kweir_nic *nic, struct kweir_io *io);
void kweir_nic_serve(struct kweir_nic *nic);

int kweir_nics_init(void);
void kweir_nics_exit(void);

#endif
