/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A mux from the inside.
 *
 * hub		one of a process: device, intakes, its poller
 * intake	SRQ, CQ and buffers of what arrives: of the first level, and of all below
 * node		another mux, as this one knows it: one QP a class, the worker that posts on them
 * lane		one of these QPs
 * circuit	a connection: two rings of bytes, and a flow of its node's scheduler
 * stake	what owners of a party have of a node's scheduler in a class: a bundle of flows
 * offer	a service that somebody listens for
 * opening	another mux's OPEN that waits for rings
 * owner	whose circuits and offers they are: this program, or a tenant of weir share
 *
 * Threads. The poller takes in all that arrives, drives handshakes, and ends nodes. A node's
 * worker posts on its lanes and knows its scheduler. Applications' threads touch a connection's
 * rings, and leave it in the worker's inbox when there is news; they and the poller do its work
 * themselves if nobody is at it (serve.c): what is said to be the worker's is his who serves.
 *
 * hub->lock guards the tables, the lists, and the life of everything; what is touched without it
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

#define WEIR_UNPROVEN_LANES_MAX 64
#define WEIR_READS_MAX 16 /* of a lane in flight */
#define WEIR_HUB_IDLE_NS (10 * WEIR_NS_PER_S) /* of who does not say otherwise */

/**
 * struct weir_hub - a process's end
 * @id: random, told to other muxes under the key: by it they know a mux, whatever its address
 * @self: the program's own connections
 * @options: with the defaults filled in
 * @table: connections by index, the lower half of an id; @generations: the upper half of the
 *	last that had that place, so that an id is not met again soon
 * @changed: broadcast when a lane has become something else
 * @low_bytes, @low_nodes: what of lower levels is in flight over all nodes, and how many have some;
 *	any thread
 * @completions: of both intakes: of the first level, and of all others
 */
struct weir_hub {
	struct weir_mux mux;
	uint8_t id[WIRE_MUX_ID];
	struct weir_owner self;
	struct weir_mux_options options;
	struct weir_mux_class classes[WEIR_MUX_CLASSES_MAX];
	struct weir_sched_config configs[WEIR_MUX_CLASSES_MAX];
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct weir_list nodes, lanes, offers, parties;
	struct weir_circuit **table;
	uint16_t *generations;
	unsigned int nr_conns, next_index, nr_unproven;
	uint64_t last_event; /* so that one knows what was first: see meet.c */
	uint64_t last_lane;
	bool is_stopping;

	char address[WEIR_ADDRESS_MAX];
	struct ibv_context *device;
	struct ibv_pd *pd;
	struct rdma_event_channel *cm;
	struct rdma_cm_id *listener;
	struct ibv_comp_channel *completions;
	struct weir_intake intakes[2];
	uint8_t reads_max;

	int epoll, bell;
	pthread_t poller;
	bool has_poller;
	bool has_left; /* news, or more to do, and has not served since; the poller's */
	struct weir_mux_counts counts;
	_Atomic uint64_t low_bytes;
	_Atomic uint32_t low_nodes;
};

/* Whether a class is below the first level. */
static inline bool weir_hub_is_low(const struct weir_hub *hub, uint8_t class)
{
	return hub->configs[class].level > hub->configs[0].level;
}

/*
 * hub.c. @options: as for weir_mux_open().
 * weir_hub_close() as weir_mux_close(); owners but its own are gone.
 */
int weir_hub_open(const struct weir_mux_options *options, struct weir_hub **hub,
		  struct weir_error *error);
void weir_hub_close(struct weir_hub *hub);
/* Cuts all off, and lets nobody in; once no connection is left to an owner he may go. */
void weir_hub_stop(struct weir_hub *hub);
void weir_hub_info(struct weir_hub *hub, struct weir_mux_info *info);
/* From now on other muxes are let go of after so long; 0: WEIR_HUB_IDLE_NS. */
void weir_hub_idle(struct weir_hub *hub, uint64_t idle_ns);
/* Waits until what has been closed has been sent, of @owner; up to the timeout. */
void weir_hub_linger(struct weir_hub *hub, struct weir_owner *owner);
/* Of what is asked for now. */
static inline uint64_t weir_hub_deadline_ns(const struct weir_hub *hub)
{
	return weir_after_ns(weir_now_ns(), hub->options.timeout_ns);
}

/* device.c: the verbs objects of a mux. */
int weir_hub_device_open(struct weir_hub *hub, struct weir_error *error);
void weir_hub_device_close(struct weir_hub *hub);

/* poller.c: the thread. */
void *weir_hub_poller(void *hub);

/*
 * serve.c: does some of the work of all nodes of which there is news. Without locks.
 * Return: whether there may be more; the caller comes again before he sleeps.
 */
bool weir_hub_serve(struct weir_hub *hub);

/* admit.c: the connection manager has something to say. The poller's, with hub->lock held. */
void weir_hub_cm_events(struct weir_hub *hub, struct rdma_event_channel *cm);

/* dial.c: finds or makes a node with a lane of @class, for @owner. Without hub->lock; on success
 * the node is referenced for the caller. -ECONNRESET: @owner is gone; -ETIMEDOUT: at
 * @deadline_ns. */
int weir_hub_dial(struct weir_owner *owner, const char *peer, uint8_t class, uint64_t deadline_ns,
		  struct weir_node **node, struct weir_error *error);

/* control.c: a control message came by @lane. The poller's, with hub->lock held. -EPROTO. */
int weir_control_input(struct weir_lane *lane, const void *data, size_t length);

/*
 * opening.c: another mux's OPEN came by @lane. It is answered at once, or by another thread later,
 * if there are no rings for it yet. The poller's, with hub->lock held. -EPROTO.
 */
int weir_opening_input(struct weir_lane *lane, const struct wire_mux *m);

/* local.c: what a hub's own program does with it. */
extern const struct weir_mux_host weir_local_host;

#endif
