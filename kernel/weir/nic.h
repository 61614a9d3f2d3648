/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A device, and what all sessions on it share: one lock, one window, one inbox (core/base/inbox.h tells
 * how they go together).
 *
 * Who submits pushes, and serves if nobody else does. Who has the lock for another reason takes
 * what has come first, and serves when it gives it back. What is done is told without the lock,
 * and never by who submits: so whoever is told may submit again.
 */
#ifndef WEIR_KERNEL_NIC_H
#define WEIR_KERNEL_NIC_H

#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include <rdma/ib_verbs.h>

#include "core/engine/engine.h"
#include "kernel/weir/weir.h"

/* For all that ios wait for; none of it allocates or waits for memory. */
extern struct workqueue_struct *kweir_wq;

/**
 * struct kweir_nic - one device
 * @entry: in the list of all; @users: sessions that have it. Guarded by a mutex of nic.c's
 * @pd: of what we make on it; NULL when the device is gone, and its sessions are lost
 * @sge_max: entries of local memory in a WR
 * @rd_atomic: reads in flight on a QP
 * @sessions: those that have it
 * @lock: guards all below, and of each session what its header says
 * @fed: sessions that may have something to post
 * @done: ios to be told of; @deliver tells
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
	struct weir_inbox inbox;
	struct weir_list fed;
	struct weir_list done;
	struct work_struct deliver;
	struct ib_rdma_wr chain[WEIR_BATCH_MAX];
};

/* Finds or makes that of @device, for @session. Context: process; sleeps. */
int kweir_nic_get(struct ib_device *device, struct kweir_session *session, u64 window_bytes,
		  struct kweir_nic **nic);
void kweir_nic_put(struct kweir_nic *nic, struct kweir_session *session);

/* Takes the lock, and what has come in. Context: any but hard interrupts. */
void kweir_nic_lock(struct kweir_nic *nic) __acquires(&nic->lock);

/* Gives the lock back, and serves while there is work and nobody else does. */
void kweir_nic_unlock(struct kweir_nic *nic) __releases(&nic->lock);

/* The same, and tells what is done. Context: process. */
void kweir_nic_unlock_and_complete(struct kweir_nic *nic) __releases(&nic->lock);

/* One comes; and is served, if nobody else does. Context: any but hard interrupts. */
void kweir_nic_push(struct kweir_nic *nic, struct kweir_io *io);
void kweir_nic_serve(struct kweir_nic *nic);

int kweir_nics_init(void);
void kweir_nics_exit(void);

#endif
