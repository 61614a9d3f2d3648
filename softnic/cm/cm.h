/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The connection manager: librdmacm's API between processes of one host.
 *
 * One lock, cm_lock, guards all structures below, because the control path need not be fast. A
 * holder of cm_lock calls no verb and never waits: connecting a QP asks the peer's engine, and
 * that engine may be waiting for the cm_lock of the peer's process.
 *
 * The engine thread handles incoming messages (conn.c), the user's threads make the calls
 * (connect.c). The thread that fetches an event changes the QP's state (event.c), as in librdmacm.
 *
 * Internal functions return a negative errno on failure; only the public API sets errno.
 */
#ifndef WEIR_SOFTNIC_CM_CM_H
#define WEIR_SOFTNIC_CM_CM_H

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "addr.h"
#include "msg.h"
#include "softnic/loop/loop.h"
#include "softnic/verbs/listing.h"
#include "softnic/verbs/verbs.h"
#pragma GCC visibility push(default)
#include <rdma/rdma_verbs.h>
#pragma GCC visibility pop

enum {
	CM_BACKLOG_MAX = 1024, /* requests that no rdma_get_cm_event() has fetched yet */
	CM_ANSWER_MS = 60000, /* longest wait for the remote side's next message */
};

enum cm_state {
	CM_IDLE,
	CM_BOUND,
	CM_ADDR_RESOLVED,
	CM_ROUTE_RESOLVED,
	CM_LISTENING,
	CM_REQ_SENT, /* active: waits for REP or REJ */
	CM_REP_RCVD, /* active: the user's turn */
	CM_REQ_WAIT, /* passive, unknown to the user: waits for REQ */
	CM_REQ_RCVD, /* passive: the user's turn */
	CM_REP_SENT, /* passive: waits for RTU */
	CM_ESTABLISHED,
	CM_CLOSED, /* only TIMEWAIT_EXIT may still follow */
};

struct cm_channel;
struct roce_cm_conn;

TAILQ_HEAD(cm_group_list, cm_group);
TAILQ_HEAD(cm_id_list, cm_id);

/**
 * struct cm_group - a multicast group that an id has joined
 * @addr: the user's address
 * @context: the user's
 * @ah: address handle attributes of the group
 * @send_only: the QP only sends to the group
 * @attached: the QP is attached to the group and receives
 * @events_out: events fetched and not yet acknowledged
 * @link: in the id's list
 */
struct cm_group {
	union cm_addr addr;
	void *context;
	struct ibv_ah_attr ah;
	bool send_only;
	bool attached;
	unsigned int events_out;
	TAILQ_ENTRY(cm_group) link;
};

/**
 * struct cm_id - an id
 * @id: the user's view
 * @state: state of the connection
 * @sync: created without a channel: calls wait for their event
 * @afonly: a wildcard accepts calls to the same address family only
 * @reuse: not 0 if other ids with RDMA_OPTION_ID_REUSEADDR may share the address; see claims.h
 * @ack_timeout: of the QP, as in ibv_qp_attr.timeout
 * @fd: the socket: bound, then listening or connected; -1: none. Stays open until the id is
 *	destroyed, so that the descriptor number is not reused
 * @fd_ipv4: a second listening socket, for the IPv4 part of the IPv6 wildcard; or -1
 * @timer: for the remote side's next message, the next call to a listener, or the end of
 *	TIMEWAIT; on a listener, the pause after descriptors ran out
 * @timed_out: @timer has shut down the socket
 * @called_ns: time of rdma_connect()
 * @request: the first message on @fd
 * @listener: of a request not yet fetched
 * @children: the listener's requests not yet fetched
 * @child_link: in the listener's @children
 * @nr_children: at most CM_BACKLOG_MAX
 * @nr_requests: children with an event, at most @backlog
 * @backlog: 1 to CM_BACKLOG_MAX
 * @groups: multicast groups
 * @device_link: in the list of ids bound to the device; tqe_prev is NULL if unbound
 * @link: in the list of all ids
 * @listing: in the list for rdma(8)
 * @events_out: events fetched and not yet acknowledged
 * @local_qpn: of the QP that the user has made or named last; the user's pointer may be stale
 * @remote_qpn: from REQ or REP
 * @responder_resources: reads our QP serves; the user's value, then the negotiated value
 * @initiator_depth: reads our QP may issue; likewise
 * @retry_count: of our QP
 * @rnr_retry_count: of our QP, requested by the remote side
 * @local_ece: set by the user
 * @remote_ece: sent by the remote side
 * @path: the path record of @id once the route is resolved
 * @is_far: the destination is on another host; see softnic/cm_far/cm_far.h
 * @conn: with the other host, or NULL
 * @psn: with which the remote side begins to send to us; 0 unless the id is far
 * @remote_psn: with which we begin
 * @looking_up: rdma_resolve_addrinfo() was called and the result not yet queried
 * @found: the result of rdma_resolve_addrinfo()
 * @qp_init_attr: for the children of a listening endpoint, or NULL
 * @connect_data: of an endpoint: precedes the user's private data in REQ
 * @connect_len: bytes in @connect_data
 */
struct cm_id {
	struct rdma_cm_id id;
	enum cm_state state;
	bool sync;
	bool afonly;
	uint32_t reuse;
	uint8_t ack_timeout;

	int fd;
	int fd_ipv4;
	struct softnic_timer timer;
	bool timed_out;
	uint64_t called_ns;
	struct cm_msg request;

	struct cm_id *listener;
	struct cm_id_list children;
	TAILQ_ENTRY(cm_id) child_link;
	unsigned int nr_children;
	unsigned int nr_requests;
	unsigned int backlog;
	unsigned int events_out;
	struct cm_group_list groups;
	TAILQ_ENTRY(cm_id) device_link;
	TAILQ_ENTRY(cm_id) link;
	struct listing_place listing;

	uint32_t local_qpn, remote_qpn;
	uint8_t responder_resources;
	uint8_t initiator_depth;
	uint8_t retry_count;
	uint8_t rnr_retry_count;
	struct ibv_ece local_ece;
	struct ibv_ece remote_ece;
	struct ibv_sa_path_rec path;
	uint8_t tos;

	bool is_far;
	struct roce_cm_conn *conn;
	uint32_t psn;
	uint32_t remote_psn;

	bool looking_up;
	struct rdma_addrinfo *found;

	struct ibv_qp_init_attr *qp_init_attr;
	uint8_t connect_data[CM_REQ_PRIVATE_MAX];
	uint8_t connect_len;
};

/**
 * struct cm_device - the device shared by all ids of the process
 * @verbs: opened once and never closed
 * @pd: default of all ids
 * @responder_resources_max: of a QP
 * @initiator_depth_max: of a QP
 * @mtu: of the port
 */
struct cm_device {
	struct ibv_context *verbs;
	struct ibv_pd *pd;
	uint8_t responder_resources_max;
	uint8_t initiator_depth_max;
	enum ibv_mtu mtu;
};

extern pthread_mutex_t cm_lock;

static inline struct cm_id *cm_id(struct rdma_cm_id *id)
{
	return (struct cm_id *)((char *)id - offsetof(struct cm_id, id));
}

/* Datagrams: the id does not connect, but looks up the remote QP. */
static inline bool cm_id_is_datagram(const struct cm_id *id)
{
	return id->id.qp_type == IBV_QPT_UD;
}

static inline uint8_t cm_min(uint8_t a, uint8_t b)
{
	return a < b ? a : b;
}

/* The public API's convention: -1 and errno. */
static inline int cm_return(int rc)
{
	if (!rc)
		return 0;
	errno = -rc;
	return -1;
}

/* port.c: the port spaces. Context: cm_lock held. */

/**
 * cm_port_take() - claim an address and port, and open the socket that holds the claim
 * @id: sets @fd and, for the IPv6 wildcard, @fd_ipv4
 * @addr: port 0 is replaced by a free port
 *
 * Return: 0, -EADDRINUSE or -EADDRNOTAVAIL as cm_claim_conflict(), or the error of socket().
 */
int cm_port_take(struct cm_id *id, union cm_addr *addr);

/* As cm_port_take(), for a source address: any port that is free on all addresses. */
int cm_port_take_source(struct cm_id *id, union cm_addr *addr);

/**
 * cm_port_make_unique() - end sharing by RDMA_OPTION_ID_REUSEADDR, because a listener is alone
 *
 * Return: as cm_port_take(); on failure the claim is unchanged.
 */
int cm_port_make_unique(struct cm_id *id);

/* A value for cm_id.reuse: unique and not 0. */
uint32_t cm_port_token(void);

/**
 * cm_port_connect() - connect a claimed socket to the listener at an address
 *
 * Context: Does not wait.
 * Return: 0; -ECONNREFUSED no process of this user listens; -EAGAIN the listener's queue is full.
 */
int cm_port_connect(int fd, enum rdma_port_space ps, const union cm_addr *addr);

/* A new socket, connected likewise to the listener in a port space. Return: or the descriptor. */
int cm_port_open(enum rdma_port_space ps, const union cm_addr *addr);

/* True if the remote process belongs to our user. */
bool cm_port_peer_is_ours(int fd);

/* device.c */

/*
 * Open the device on the first call. When the device is removed, its ids get DEVICE_REMOVAL.
 *
 * Context: Any; the first call without cm_lock.
 * Return: 0, -ENODEV after the device was removed, or a negative errno.
 */
int cm_device_get(const struct cm_device **device);

/*
 * Check that the id can use the device.
 *
 * Return: 0, or -EINVAL: IPoIB needs InfiniBand, and the port is Ethernet.
 */
int cm_device_check(const struct cm_id *id);

/* Bind an id to the device, port and PD. Context: cm_lock held. */
void cm_device_bind(struct cm_id *id, const struct cm_device *device);

/* Unbind an id; does nothing if already unbound. Context: without cm_lock. */
void cm_device_unbind(struct cm_id *id);

/* Fill in an id's GIDs and path from the id's addresses. */
void cm_device_route(struct cm_id *id, const struct cm_device *device);

/* id.c */

/*
 * Create an id without a socket. With @channel NULL, a synchronous id with a private channel.
 *
 * Context: cm_lock held.
 */
int cm_id_new(struct cm_channel *channel, void *context, enum rdma_port_space ps,
	      enum ibv_qp_type type, struct cm_id **id);

/*
 * Check that a port space allows a QP type.
 *
 * Return: 0, -EINVAL, or -EOPNOTSUPP: the device does not support XRC.
 */
int cm_id_check_type(enum rdma_port_space ps, enum ibv_qp_type type);

/* A port space's default QP type. */
enum ibv_qp_type cm_id_default_type(enum rdma_port_space ps);

/* The id of this process that listens at an address, or NULL. Context: cm_lock held. */
struct cm_id *cm_id_listening(enum rdma_port_space ps, const union cm_addr *addr);

/* Free an id that only the engine still refers to. Context: without cm_lock. */
void cm_id_free(struct cm_id *id);

/**
 * cm_id_bind() - bind an idle id to an address
 * @take: cm_port_take() or cm_port_take_source()
 *
 * Context: cm_lock held.
 * Return: 0, -EINVAL if the id is already bound, or the error of @take.
 */
int cm_id_bind(struct cm_id *id, union cm_addr *addr,
	       int (*take)(struct cm_id *id, union cm_addr *addr));

/* The addresses that the user sees, in id->route. */
void cm_id_src(const struct cm_id *id, union cm_addr *addr);
void cm_id_dst(const struct cm_id *id, union cm_addr *addr);
void cm_id_set_src(struct cm_id *id, const union cm_addr *addr);
void cm_id_set_dst(struct cm_id *id, const union cm_addr *addr);

/* listing.c. Context: cm_lock held. */

/* List an id that now uses the device. cm_device_unbind() ends it. */
void cm_listing_begin(struct cm_id *id);

/* What the list shows of an id has changed: its QP. */
void cm_listing_update(struct cm_id *id);

void cm_id_set_state(struct cm_id *id, enum cm_state state);

/* resolve.c */

/* Resolve the route. Context: without cm_lock. Return: 0, or -EINVAL in the wrong state. */
int cm_resolve_route(struct cm_id *id);

/* listen.c */

/*
 * Stop accepting, and reject the requests that the user has not fetched. The caller has dropped
 * their events. Does nothing for an id that does not listen. Context: without cm_lock.
 */
void cm_listen_stop(struct cm_id *id);

/**
 * cm_listen_add_child() - a child that waits for its request
 * @fd: its socket, owned by the child; -1 for a far id
 *
 * Context: cm_lock held.
 * Return: NULL without memory, or if the listener has CM_BACKLOG_MAX children or has stopped.
 */
struct cm_id *cm_listen_add_child(struct cm_id *listener, int fd);

/* Remove a child from the listener's list. Context: cm_lock held. */
void cm_listen_forget(struct cm_id *child);

/* conn.c: one connection. Context: cm_lock held, except for cm_conn_watch(). */

/**
 * cm_conn_watch() - let the engine read the connected socket @id->fd, and expect a message
 *
 * Context: With or without cm_lock.
 * Return: 0 or a negative errno.
 */
int cm_conn_watch(struct cm_id *id);

/* Expect the next message within CM_ANSWER_MS. */
void cm_conn_await(struct cm_id *id);

/* Return: 0, or -ECONNRESET if the remote side has closed; the engine sees the close, too. */
int cm_conn_send(struct cm_id *id, const struct cm_msg *msg);

/* A message of the remote side, or a request that cm_conn_refusal() lets pass. */
void cm_conn_received(struct cm_id *id, const struct cm_msg *msg);
void cm_conn_request(struct cm_id *child, const struct cm_msg *msg);

/* Return: why a listener refuses a request; CM_REASON_NONE: it does not. */
enum cm_reason cm_conn_refusal(const struct cm_id *listener, const struct cm_msg *msg);

/* The remote side has ended, or must end: push the event that fits the state. */
void cm_conn_lost(struct cm_id *id, int status);

/* Reject the remote side, or only shut down; the remote side sees the end at once. */
void cm_conn_reject(struct cm_id *id, enum cm_reason reason, const void *data, uint8_t len);
void cm_conn_shutdown(struct cm_id *id);

/* Mark the passive side established. */
void cm_conn_established(struct cm_id *id);

/* Push DISCONNECTED now, and TIMEWAIT_EXIT when the QP number may be reused. */
void cm_conn_disconnected(struct cm_id *id);

/* connect.c */

/**
 * cm_connect_finish() - send RTU, because the active side's QP is ready
 *
 * Context: without cm_lock.
 * Return: 0, or -EINVAL if no REP was received. 0 also if the peer has ended, because the engine
 * pushes an event for that.
 */
int cm_connect_finish(struct cm_id *id);

/*
 * No process listens. Call again soon, if rdma_connect() was called a moment ago; else return
 * false. Context: cm_lock held.
 */
bool cm_connect_again(struct cm_id *id);

/* qp.c */

/* Fill in address handle attributes for the remote side; for a group, replace the dgid. */
void cm_qp_path(const struct cm_id *id, struct ibv_ah_attr *ah);

/* Move the QP, if any, from INIT to RTS. Context: without cm_lock; may ask the peer. */
int cm_qp_connect(struct cm_id *id);
int cm_qp_fail(struct cm_id *id);

/* lookup.c: names of the events that older headers lack */
const char *cm_lookup_event_str(int event);

/* mcast.c */

/* Attach the QP when the user fetches a join event. Return: 0 or a negative errno. */
int cm_mcast_attach(struct cm_id *id, struct cm_group *group);

/* Free all groups of an id that is about to be freed. Context: without cm_lock. */
void cm_mcast_free(struct cm_id *id);

#endif
