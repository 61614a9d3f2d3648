/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The mux inside a process.
 *
 *	mux		one per process: device, SRQs, poller
 *	srq		SRQ, CQ and buffers: one for the first level, one for all below
 *	remote		another mux: a QP per class, and the worker that posts on them
 *	qp		a QP of a remote
 *	vconn		a connection: two rings of bytes, and a flow of the remote's scheduler
 *	sched_group	an account group's share of a remote's scheduler in a class
 *	service		a service offered by a program
 *	pending_open	another mux's OPEN, waiting for rings
 *	account		owner of connections and services: this program, or a tenant of weir share
 *
 * Threads. The poller takes in all arrivals, drives handshakes and ends remotes. A remote's
 * worker posts on the remote's QPs and owns its scheduler. Application threads touch a
 * connection's rings and put the connection into the worker's inbox. Application threads and the
 * poller also act as the worker while no other thread does (combine.c); "the worker" means the
 * claim holder.
 *
 * mux->lock guards tables, lists and lifetimes; fields accessed without the lock say so. The
 * poller holds it for a batch of arrivals, a worker mostly to release a connection.
 *
 * A connection is freed when three parties have let go: the application (is_closed); the peer,
 * whose last message is FIN (enum weir_mux_peer_state); and the worker (is_detached), after our FIN
 * is sent. No thread puts a detached connection into the inbox.
 */
#ifndef WEIR_LIB_MUX_LOCAL_LOCAL_H
#define WEIR_LIB_MUX_LOCAL_LOCAL_H

#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <weir/mux.h>

#include "core/base/list.h"
#include "core/sched/sched.h"
#include "lib/conn/listener.h"
#include "lib/conn/places.h"
#include "lib/base/clock.h"
#include "lib/mux/vconn/vconn.h"
#include "lib/mux/handle.h"
#include "lib/mux/local/srq.h"
#include "lib/mux/local/memory.h"
#include "lib/mux/remote/remote.h"
#include "lib/mux/local/account.h"

#define WEIR_MUX_QP_READS_MAX 16 /* reads in flight per QP */
#define WEIR_MUX_IDLE_NS (10 * WEIR_NS_PER_S) /* the default */

/**
 * struct weir_mux_local - the mux of a process
 * @id: random; identifies the mux to others at any address; sent under the key
 * @dial_id: its id where it dials, if it pins peers: see dedup.c
 * @identity: in memory for keys; NULL: none
 * @pin: options.peer_identity
 * @self: the program's own account
 * @options: with the defaults filled in
 * @table: connections by index, the lower half of an id; @generations: the upper half of the
 *	last id at the index, so ids are not reused soon
 * @changed: broadcast when a QP changes state
 * @low_bytes, @low_remotes: low-level bytes in flight over all remotes, and the number of
 *	remotes with some; any thread
 * @completions: channel of both SRQs' CQs
 */
struct weir_mux_local {
	struct weir_mux mux;
	uint8_t id[WIRE_MUX_ID], dial_id[WIRE_MUX_ID];
	struct weir_noise_pair *identity;
	uint8_t pin[WIRE_KEY];
	struct weir_mux_account self;
	struct weir_mux_options options;
	struct weir_mux_class classes[WEIR_MUX_CLASSES_MAX];
	struct weir_sched_config configs[WEIR_MUX_CLASSES_MAX];
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct weir_list remotes, qps, services, groups;
	struct weir_mux_vconn **table;
	uint16_t *generations;
	unsigned int nr_conns, next_index;
	struct weir_places places;
	uint64_t last_event; /* orders handshake events: see dedup.c */
	uint64_t last_qp;
	bool is_stopping;

	char address[WEIR_ADDRESS_MAX];
	struct ibv_context *device;
	struct ibv_pd *pd;
	struct weir_listener listener;
	struct ibv_comp_channel *completions;
	struct weir_mux_srq srqs[2];
	uint8_t reads_max;

	int epoll, wakeup_fd;
	pthread_t poller;
	bool has_poller;
	bool has_queued; /* queued connections or work left over; poller only */
	struct weir_mux_counters counts;
	uint64_t low_bytes, low_remotes;
};

/* Whether a class is below the first level. */
static inline bool weir_mux_local_is_low(const struct weir_mux_local *mux, uint8_t class)
{
	return mux->configs[class].level > mux->configs[0].level;
}

/*
 * As weir_mux_open() and weir_mux_close(), but ignores the sizes in the options. At close, all
 * accounts but @self are gone.
 */
int weir_mux_local_open(const struct weir_mux_options *options, struct weir_mux_local **mux,
			struct weir_error *error);
void weir_mux_local_close(struct weir_mux_local *mux);
/* Whether the mux trusts only some of the muxes that know the key, when it dials. */
bool weir_mux_local_pins(const struct weir_mux_local *mux);
/* Cuts off all connections and lets in no more. An account without connections may then go. */
void weir_mux_local_stop(struct weir_mux_local *mux);
void weir_mux_local_info(struct weir_mux_local *mux, struct weir_mux_info *info);
/* Sets the idle time after which remotes end; 0: WEIR_MUX_IDLE_NS. */
void weir_mux_local_set_idle(struct weir_mux_local *mux, uint64_t idle_ns);
/* Waits until the account's closed connections have sent everything, up to the timeout. */
void weir_mux_local_drain(struct weir_mux_local *mux, struct weir_mux_account *account);
/* The deadline of an operation starting now. */
static inline uint64_t weir_mux_local_deadline_ns(const struct weir_mux_local *mux)
{
	return weir_after_ns(weir_now_ns(), mux->options.timeout_ns);
}

/* device.c: the verbs objects. */
int weir_mux_local_device_open(struct weir_mux_local *mux, struct weir_error *error);
void weir_mux_local_device_close(struct weir_mux_local *mux);

/* poller.c: the thread. */
void *weir_mux_poller_run(void *mux);

/*
 * Does work of all remotes with news. Context: no lock held.
 * Return: whether work may be left; the caller comes again before sleeping.
 */
bool weir_mux_local_combine(struct weir_mux_local *mux);

/* Handles connection manager events. Context: the poller, with mux->lock held. */
void weir_mux_remote_accept_events(struct weir_mux_local *mux, struct rdma_event_channel *cm);

/*
 * Finds or creates a remote with a QP of @class. On success the caller has a reference.
 * -ECONNRESET: @account is gone; -ETIMEDOUT: @deadline_ns has passed. Context: without
 * mux->lock.
 */
int weir_mux_remote_connect(struct weir_mux_account *account, const char *peer, uint8_t class,
			    uint64_t deadline_ns, struct weir_mux_remote **remote,
			    struct weir_error *error);

/* Handles a control message from @qp. -EPROTO. Context: the poller, with mux->lock held. */
int weir_mux_control_input(struct weir_mux_qp *qp, const void *data, size_t length);

/*
 * Handles another mux's OPEN, at once or by another thread if rings are missing. -EPROTO.
 * Context: the poller, with mux->lock held.
 */
int weir_mux_pending_open_input(struct weir_mux_qp *qp, const struct wire_mux_control *m);

/* local_ops.c: operations of the mux's own program. */
extern const struct weir_mux_ops weir_mux_local_ops;

#endif
