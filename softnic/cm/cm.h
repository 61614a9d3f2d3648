/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The connection manager: librdmacm's API between processes of one host.
 *
 * One lock, cm_lock, guards everything below: this is the control path, and simple is right.
 * No verb is called and nothing is waited for while it is held: connecting QPs asks the peer's
 * engine, which may be waiting for that lock in its process. The engine thread does what sockets
 * bring in (cm_conn.c), the user's threads do the rest (cm_call.c), and what the QP must be told
 * when an event arrives is done by the thread that fetches the event (cm_event.c), as librdmacm
 * does.
 *
 * A function that fails returns a negative errno; only those of the public API set errno.
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
#include "softnic/verbs/verbs.h"
#pragma GCC visibility push(default)
#include <rdma/rdma_verbs.h>
#pragma GCC visibility pop

enum {
	CM_BACKLOG_MAX = 1024, /* requests that no rdma_get_cm_event() has fetched yet */
	CM_ANSWER_MS = 60000, /* what the other side may take for its next message */
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
	CM_CLOSED, /* nothing more will happen, but TIMEWAIT_EXIT */
};

struct cm_channel;

TAILQ_HEAD(cm_group_list, cm_group);
TAILQ_HEAD(cm_id_list, cm_id);

/**
 * struct cm_group - a multicast group that an id has joined
 * @addr: as the user gave it
 * @context: the user's
 * @ah: how to send to it
 * @send_only: the QP does not receive
 * @attached: the QP does receive
 * @events_out: fetched and not yet acknowledged
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
 * @id: what the user sees
 * @state: where it stands
 * @sync: created without a channel: its calls wait for their event
 * @afonly: a wildcard accepts calls to its own address family only
 * @reuse: not 0 if others with RDMA_OPTION_ID_REUSEADDR may have its address too; see cm_claims.h
 * @ack_timeout: of the QP, as in ibv_qp_attr.timeout
 * @fd: its socket: bound, then listening or connected; -1 if there is none. Lives until the id is
 *	destroyed, so that its number cannot be another's
 * @fd_ipv4: a second listening socket, for the IPv4 part of the IPv6 wildcard; or -1
 * @timer: bounds the wait for the other side's next message, or paces the calls to a listener, or
 *	ends the time after a connection; of a listener, a rest after descriptors ran out
 * @timed_out: @timer has cut the socket
 * @called_ns: when the user called rdma_connect()
 * @request: what @fd says first
 * @listener: of a request that was not fetched yet
 * @children: such requests
 * @child_link: in the listener's @children
 * @nr_children: bounded by CM_BACKLOG_MAX
 * @nr_requests: those of them that have an event, bounded by @backlog
 * @backlog: 1 to CM_BACKLOG_MAX
 * @groups: multicast groups
 * @device_link: in the list of the ids that are bound to the device; tqe_prev is NULL if it is not
 * @link: in the list of all ids
 * @events_out: fetched and not yet acknowledged
 * @remote_qpn: from REQ or REP
 * @responder_resources: what our QP serves; from the user, then agreed
 * @initiator_depth: what our QP may issue; likewise
 * @retry_count: of our QP
 * @rnr_retry_count: of our QP, as the other side asked
 * @local_ece: what the user set
 * @remote_ece: what the other side sent
 * @path: what @id points to once the route is known
 * @looking_up: rdma_resolve_addrinfo() was called, and the result not yet taken
 * @found: that result
 * @qp_init_attr: for the children of a listening endpoint, or NULL
 * @connect_data: of an endpoint: goes before the user's private data in REQ
 * @connect_len: bytes of it
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

	uint32_t remote_qpn;
	uint8_t responder_resources;
	uint8_t initiator_depth;
	uint8_t retry_count;
	uint8_t rnr_retry_count;
	struct ibv_ece local_ece;
	struct ibv_ece remote_ece;
	struct ibv_sa_path_rec path;
	uint8_t tos;

	bool looking_up;
	struct rdma_addrinfo *found;

	struct ibv_qp_init_attr *qp_init_attr;
	uint8_t connect_data[CM_REQ_PRIVATE_MAX];
	uint8_t connect_len;
};

/**
 * struct cm_device - the device as all ids of the process share it
 * @verbs: opened once, for as long as the process lives
 * @pd: the default of all ids
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

/* Datagrams: it does not connect, it asks whom to send to. */
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

/* cm_port.c: the port spaces. With cm_lock held. */

/**
 * cm_port_take() - claim an address and port, and with it its socket
 * @id: gets @fd and, for the IPv6 wildcard, @fd_ipv4
 * @addr: port 0 is replaced by one that is free
 *
 * Return: 0, -EADDRINUSE or -EADDRNOTAVAIL as cm_claim_conflict() has it, or what socket() says.
 */
int cm_port_take(struct cm_id *id, union cm_addr *addr);

/* The same for who only wants a source: any port that is free for all addresses. */
int cm_port_take_source(struct cm_id *id, union cm_addr *addr);

/**
 * cm_port_make_unique() - end the sharing of RDMA_OPTION_ID_REUSEADDR: a listener is alone
 *
 * Return: as cm_port_take(), and then nothing has changed.
 */
int cm_port_make_unique(struct cm_id *id);

/* For cm_id.reuse: not 0, and no other id's. */
uint32_t cm_port_token(void);

/**
 * cm_port_connect() - connect a claimed socket to whoever listens at an address
 *
 * Context: Does not wait.
 * Return: 0; -ECONNREFUSED nobody of this user listens; -EAGAIN the listener's queue is full.
 */
int cm_port_connect(const struct cm_id *id, const union cm_addr *addr);

/* Does the process at the other end belong to our user? */
bool cm_port_peer_is_ours(int fd);

/* cm_device.c */

/*
 * Open the device, once. When it disappears, its ids get DEVICE_REMOVAL.
 *
 * Context: Any; opens without cm_lock only. Return: 0, -ENODEV after that, or a negative errno.
 */
int cm_device_get(const struct cm_device **device);

/*
 * Can the id use it at all? Return: 0, or -EINVAL: IPoIB runs on InfiniBand, and this is Ethernet.
 */
int cm_device_check(const struct cm_id *id);

/* Point an id at the device, its port and its PD. Context: cm_lock held. */
void cm_device_bind(struct cm_id *id, const struct cm_device *device);

/* The reverse, when the id ends; again is harmless. Context: without cm_lock. */
void cm_device_unbind(struct cm_id *id);

/* Fill GIDs and path of an id from its addresses. */
void cm_device_route(struct cm_id *id, const struct cm_device *device);

/* cm_id.c */

/*
 * An id without a socket. @channel NULL: a synchronous one, with a channel of its own.
 *
 * Context: cm_lock held.
 */
int cm_id_new(struct cm_channel *channel, void *context, enum rdma_port_space ps,
	      enum ibv_qp_type type, struct cm_id **id);

/*
 * Does this port space go with this type of QP? Return: 0, -EINVAL, or -EOPNOTSUPP: XRC, which the
 * device does not have.
 */
int cm_id_check_type(enum rdma_port_space ps, enum ibv_qp_type type);

/* What a port space gives if no type is asked for. */
enum ibv_qp_type cm_id_default_type(enum rdma_port_space ps);

/* Context: without cm_lock; nothing may refer to @id, except the engine. */
void cm_id_free(struct cm_id *id);

/**
 * cm_id_bind() - give an idle id its address
 * @take: one of cm_port.c
 *
 * Context: cm_lock held.
 * Return: 0, -EINVAL: it has one, or what @take says.
 */
int cm_id_bind(struct cm_id *id, union cm_addr *addr,
	       int (*take)(struct cm_id *id, union cm_addr *addr));

/* Addresses as the API shows them: in id->route. */
void cm_id_src(const struct cm_id *id, union cm_addr *addr);
void cm_id_dst(const struct cm_id *id, union cm_addr *addr);
void cm_id_set_src(struct cm_id *id, const union cm_addr *addr);
void cm_id_set_dst(struct cm_id *id, const union cm_addr *addr);

/* cm_resolve.c */

/* The route is known. Context: without cm_lock. Return: 0, or -EINVAL: it is not its turn. */
int cm_resolve_route(struct cm_id *id);

/* cm_listen.c */

/*
 * Take no more requests, and turn away those that the user has not fetched; their events are
 * dropped before. Nothing to do for an id that does not listen. Context: without cm_lock.
 */
void cm_listen_stop(struct cm_id *id);

/* A request that never came: off the listener's list. Context: cm_lock held. */
void cm_listen_forget(struct cm_id *child);

/* cm_conn.c: one connection. All but cm_conn_watch() with cm_lock held. */

/**
 * cm_conn_watch() - have the engine read @id->fd, a connected socket, and await a message
 *
 * Context: With or without cm_lock.
 * Return: 0 or a negative errno.
 */
int cm_conn_watch(struct cm_id *id);

/* The next message must come within CM_ANSWER_MS. */
void cm_conn_await(struct cm_id *id);

/* Return: 0, or -ECONNRESET: the other side has left, which the engine hears of, too. */
int cm_conn_send(struct cm_id *id, const struct cm_msg *msg);

/* Turn the other side away, or just leave: it sees the end at once. */
void cm_conn_reject(struct cm_id *id, enum cm_reason reason, const void *data, uint8_t len);
void cm_conn_shutdown(struct cm_id *id);

/* The passive side's last step. */
void cm_conn_established(struct cm_id *id);

/* DISCONNECTED now and, when the QP's number may be used again, TIMEWAIT_EXIT. */
void cm_conn_disconnected(struct cm_id *id);

/* cm_call.c */

/**
 * cm_connect_finish() - the active side's QP is ready: send RTU
 *
 * Context: without cm_lock.
 * Return: 0, or -EINVAL if no REP was received. A peer that is gone is no error here: the event
 * that says so is under way.
 */
int cm_connect_finish(struct cm_id *id);

/* cm_qp.c */

/* How to send to the other end, or to a group in place of it. */
void cm_qp_path(const struct cm_id *id, struct ibv_ah_attr *ah);

/* The QP, if there is one, from INIT to RTS. Context: without cm_lock; may ask the peer. */
int cm_qp_connect(struct cm_id *id);
int cm_qp_fail(struct cm_id *id);

/* cm_lookup.c: the names of events that older headers lack */
const char *cm_lookup_event_str(int event);

/* cm_mcast.c */

/* The user fetches the event of a join: have the QP receive. Return: 0 or a negative errno. */
int cm_mcast_attach(struct cm_id *id, struct cm_group *group);

/* Forget all groups. Context: without cm_lock; @id is about to be freed. */
void cm_mcast_free(struct cm_id *id);

#endif
