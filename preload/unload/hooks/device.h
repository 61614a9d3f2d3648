/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A device opened by the program: the original functions of its table, and its memory
 * registrations. Never freed: a new context at the same address reuses the record.
 */
#ifndef WEIR_PRELOAD_UNLOAD_HOOKS_DEVICE_H
#define WEIR_PRELOAD_UNLOAD_HOOKS_DEVICE_H

#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdbool.h>

#include "core/unload/umtt.h"

#define DEVICE_MRS_MAX 8192 /* table size; three quarters may be used */
#define DEVICE_CHANNELS_MAX 14 /* over all devices; a device without a channel copies for no peer */

struct unload_rx;

/**
 * struct unload_device - one context
 * @next: in the list of all; set once
 * @context: the program's, or NULL: closed
 * @ops: its original functions
 * @create_qp_ex, @create_cq_ex: likewise, or NULL
 * @lock: held from a check to the end of its copy, and while a registration is removed; guards the
 *	members below
 * @remote: memory that peers may write, by rkey; the owner is the PD's handle
 * @receivers: receivers for peers' unloaded writes
 * @channel: for events of the receivers' CQs; NULL until needed
 * @pd: for weir's own objects, out of reach of the program's QPs; NULL until needed
 * @is_full: not all registrations fit the table; atomic
 * @local_lock: guards @local
 * @local: source memory of writes, by lkey
 */
struct unload_device {
	struct unload_device *next;
	struct ibv_context *context;
	struct ibv_context_ops ops;
	struct ibv_qp *(*create_qp_ex)(struct ibv_context *, struct ibv_qp_init_attr_ex *);
	struct ibv_cq_ex *(*create_cq_ex)(struct ibv_context *, struct ibv_cq_init_attr_ex *);
	pthread_mutex_t lock;
	struct weir_umtt remote;
	struct unload_rx *receivers;
	struct ibv_comp_channel *channel;
	struct ibv_pd *pd;
	bool is_full;
	pthread_mutex_t local_lock;
	struct weir_umtt local;
	struct weir_umtt_entry tables[2][DEVICE_MRS_MAX];
};

/**
 * device_open() - the program has opened a context
 *
 * Context: any.
 * Return: the device, its table still unchanged; NULL: out of memory.
 */
struct unload_device *device_open(struct ibv_context *context);

/* Makes a channel for the service thread to sleep on. Context: with lock. Return: success. */
bool device_open_channel(struct unload_device *device);

/* The PD for weir's own objects. Context: with lock. Return: the PD, or NULL. */
struct ibv_pd *device_pd(struct unload_device *device);

/* Closes all remaining receivers; waits until @until_ns at most for peers to know. */
void device_close_receivers(struct unload_device *device, uint64_t until_ns);

/* The program is about to close the context: QPs and slot buffers are gone. */
void device_close(struct unload_device *device);

/* The device of a context, or NULL. */
struct unload_device *device_of(const struct ibv_context *context);

/* The first device; follow next for the others. */
struct unload_device *device_first(void);

/*
 * Records a registration with @access, if a CPU can reach all of its memory at the same addresses.
 * On-demand memory need not be mapped and is not recorded.
 */
void device_registered(const struct ibv_mr *mr, uint64_t iova, unsigned int access);

/* A registration is about to end. After this call no copy writes there. */
void device_deregister(const struct ibv_mr *mr);

/* May a QP of @pd read this local memory? */
bool device_may_read(struct unload_device *device, const struct ibv_pd *pd,
		     const struct ibv_sge *sge);

#endif
