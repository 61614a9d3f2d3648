/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A device that the program has opened: the functions that were in its table before ours, and what
 * is registered there. Never freed: a context that comes again at the same address gets it again.
 */
#ifndef WEIR_PRELOAD_UNLOAD_HOOKS_DEVICE_H
#define WEIR_PRELOAD_UNLOAD_HOOKS_DEVICE_H

#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdbool.h>

#include "core/unload/umtt.h"

#define DEVICE_MRS_MAX 8192 /* a table's; three in four may be in use */
#define DEVICE_CHANNELS_MAX 14 /* of all devices: who has none beyond that copies for nobody */

struct unload_rx;

/**
 * struct unload_device - one context
 * @next: of all; set once
 * @context: the program's, or NULL: closed
 * @ops: its functions
 * @create_qp_ex, @create_cq_ex: the same, or NULL
 * @lock: held from a check to the end of its copy, and when a registration goes; guards what
 * follows
 * @remote: what peers may write, by rkey; the owner is the PD's handle
 * @receivers: that peers unload to
 * @channel: raises the events of their CQs; NULL until there is one
 * @pd: of all that is ours: no QP of the program's reaches it; NULL until there is one
 * @is_full: so much is registered that not all of it is known; atomic
 * @local_lock: guards @local
 * @local: where writes may come from, by lkey
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
 * Return: it, its table still the program's; NULL: out of memory.
 */
struct unload_device *device_open(struct ibv_context *context);

/* Has a channel from now on, for the service thread to sleep on. Context: with lock. Return: so. */
bool device_open_channel(struct unload_device *device);

/* What is ours is made in it. Context: with lock. Return: it, or NULL. */
struct ibv_pd *device_pd(struct unload_device *device);

/* All that are left; waits until @until_ns at most for peers to know. */
void device_close_receivers(struct unload_device *device, uint64_t until_ns);

/* It is about to close it: its QPs and rings are gone. */
void device_close(struct unload_device *device);

/* The one of a context, or NULL. */
struct unload_device *device_of(const struct ibv_context *context);

/* The first of all; the others by next. */
struct unload_device *device_first(void);

/*
 * Something was registered with @access: remembered if a CPU reaches it at the same addresses, and
 * all of it is there: registered on demand, it need not be mapped.
 */
void device_registered(const struct ibv_mr *mr, uint64_t iova, unsigned int access);

/* It is about to go. When this returns nobody writes there, and nobody will. */
void device_deregister(const struct ibv_mr *mr);

/* Whether a QP of @pd may read its own memory there by itself. */
bool device_may_read(struct unload_device *device, const struct ibv_pd *pd,
		     const struct ibv_sge *sge);

#endif
