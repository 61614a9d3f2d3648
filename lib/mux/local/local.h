/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A mux from the inside.
 *
 * mux		one of a process: device, srqs, its poller
 * intake	SRQ, CQ and buffers of what arrives: of the first level, and of all below
 * remote		another mux, as this one knows it: one QP a class, the worker that posts on them
 * qp		one of these QPs
 * circuit	a connection: two rings of bytes, and a flow of its remote's scheduler
 * stake	what owners of a party have of a remote's scheduler in a class: a bundle of flows
 * offer	a service that somebody listens for
 * opening	another mux's OPEN that waits for rings
 * account	whose circuits and offers they are: this program, or a tenant of weir share
 *
 * Threads. The poller takes in all that arrives, drives handshakes, and ends remotes. A remote's
 * worker posts on its qps and knows its scheduler. Applications' threads touch a connection's
 * rings, and leave it in the worker's inbox when there is news; they and the poller do its work
 * themselves if nobody is at it (serve.c): what is said to be the worker's is his who serves.
 *
 * mux->lock guards the tables, the lists, and the life of everything; what is touched without it
 * says so. The poller holds it while it deals with a batch of what has arrived, a worker only
 * to let go of a connection.
 *
 * A circuit is gone when three have let go of it: the application (is_closed), the other end,
 * whose FIN is the last that it sends (is_finished), and the worker (is_detached), which does
 * so once its own FIN is sent, and after which nobody leaves it in the inbox.
 */
#ifndef WEIR_LIB_MUX_LOCAL_LOCAL_H
#define WEIR_LIB_MUX_LOCAL_LOCAL_H

#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <weir/mux.h>

#include "core/base/list.h"
#include "core/sched/sched.h"
#include "lib/conn/address.h"
#include "lib/base/clock.h"
#include "lib/mux/vconn/vconn.h"
#include "lib/mux/handle.h"
#include "lib/mux/local/srq.h"
#include "lib/mux/local/memory.h"
#include "lib/mux/remote/remote.h"
#include "lib/mux/local/account.h"

#define WEIR_MUX_UNPROVEN_QPS_MAX 64
#define WEIR_MUX_QP_READS_MAX 16 /* of a qp in flight */
#define WEIR_MUX_IDLE_NS (10 * WEIR_NS_PER_S) /* of who does not say otherwise */

/**
 * struct weir_mux_local - a process's end
 * @id: random, told to other muxes under the key: by it they know a mux, whatever its address
 * @self: the program's own connections
 * @options: with the defaults filled in
 * @table: connections by index, the lower half of an id; @generations: the upper half of the
 *	last that had that place, so that an id is not met again soon
 * @changed: broadcast when a qp has become something else
 * @low_bytes, @low_remotes: what of lower levels is in flight over all remotes, and how many have some;
 *	any thread
 * @completions: of both srqs: of the first level, and of all others
 */
struct weir_mux_local {
	struct weir_mux mux;
	uint8_t id[WIRE_MUX_ID];
	struct weir_mux_account self;
	struct weir_mux_options options;
	struct weir_mux_class classes[WEIR_MUX_CLASSES_MAX];
	struct weir_sched_config configs[WEIR_MUX_CLASSES_MAX];
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct weir_list remotes, qps, offers, groups;
	struct weir_mux_vconn **table;
	uint16_t *generations;
	unsigned int nr_conns, next_index, nr_unproven;
	uint64_t last_event; /* so that one knows what was first: see meet.c */
	uint64_t last_qp;
	bool is_stopping;

	char address[WEIR_ADDRESS_MAX];
	struct ibv_context *device;
	struct ibv_pd *pd;
	struct rdma_event_channel *cm;
	struct rdma_cm_id *listener;
	struct ibv_comp_channel *completions;
	struct weir_mux_srq srqs[2];
	uint8_t reads_max;

	int epoll, bell;
	pthread_t poller;
	bool has_poller;
	bool has_queued; /* news, or more to do, and has not served since; the poller's */
	struct weir_mux_counters counts;
	_Atomic uint64_t low_bytes;
	_Atomic uint32_t low_remotes;
};

/* Whether a class is below the first level. */
static inline bool weir_mux_local_is_low(const struct weir_mux_local *mux, uint8_t class)
{
	return mux->configs[class].level > mux->configs[0].level;
}

/*
 * mux.c. @options: as for weir_mux_open().
 * weir_mux_local_close() as weir_mux_close(); owners but its own are gone.
 */
int weir_mux_local_open(const struct weir_mux_options *options, struct weir_mux_local **mux,
			struct weir_error *error);
void weir_mux_local_close(struct weir_mux_local *mux);
/* Cuts all off, and lets nobody in; once no connection is left to an account he may go. */
void weir_mux_local_stop(struct weir_mux_local *mux);
void weir_mux_local_info(struct weir_mux_local *mux, struct weir_mux_info *info);
/* From now on other muxes are let go of after so long; 0: WEIR_MUX_IDLE_NS. */
void weir_mux_local_set_idle(struct weir_mux_local *mux, uint64_t idle_ns);
/* Waits until what has been closed has been sent, of @account; up to the timeout. */
void weir_mux_local_drain(struct weir_mux_local *mux, struct weir_mux_account *account);
/* Of what is asked for now. */
static inline uint64_t weir_mux_local_deadline_ns(const struct weir_mux_local *mux)
{
	return weir_after_ns(weir_now_ns(), mux->options.timeout_ns);
}

/* device.c: the verbs objects of a mux. */
int weir_mux_local_device_open(struct weir_mux_local *mux, struct weir_error *error);
void weir_mux_local_device_close(struct weir_mux_local *mux);

/* poller.c: the thread. */
void *weir_mux_poller_run(void *mux);

/*
 * serve.c: does some of the work of all remotes of which there is news. Without locks.
 * Return: whether there may be more; the caller comes again before he sleeps.
 */
bool weir_mux_local_combine(struct weir_mux_local *mux);

/* admit.c: the connection manager has something to say. The poller's, with mux->lock held. */
void weir_mux_remote_accept_events(struct weir_mux_local *mux, struct rdma_event_channel *cm);

/* dial.c: finds or makes a remote with a qp of @class, for @account. Without mux->lock; on success
 * the remote is referenced for the caller. -ECONNRESET: @account is gone; -ETIMEDOUT: at
 * @deadline_ns. */
int weir_mux_remote_connect(struct weir_mux_account *account, const char *peer, uint8_t class,
			    uint64_t deadline_ns, struct weir_mux_remote **remote,
			    struct weir_error *error);

/* control.c: a control message came by @qp. The poller's, with mux->lock held. -EPROTO. */
int weir_mux_control_input(struct weir_mux_qp *qp, const void *data, size_t length);

/*
 * opening.c: another mux's OPEN came by @qp. It is answered at once, or by another thread later,
 * if there are no rings for it yet. The poller's, with mux->lock held. -EPROTO.
 */
int weir_mux_pending_open_input(struct weir_mux_qp *qp, const struct wire_mux_control *m);

/* local.c: what a mux's own program does with it. */
extern const struct weir_mux_ops weir_mux_local_ops;

#endif
