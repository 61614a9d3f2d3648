/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A connection manager without I/O: messages and time in; messages, events and the next deadline
 * out (IB specification, volume 1, chapter 12; it speaks with the Linux kernel's ib_cm).
 *
 * Lost messages are repeated, as often as the REQ allows; an MRA of the peer postpones that. A
 * message that comes again is answered again. Memory for connections is the caller's, and bounds
 * what strangers can make this object remember. IDs of communications and transactions are hard to
 * guess, and a message counts only from the host that the connection is with.
 *
 * Peers tell connections apart by queue pair numbers, too: a REQ from a queue pair of a connection
 * that this object knows is refused as stale, and ends that connection. So a host must not reuse
 * a queue pair number while REQs and REPs with that number may still arrive. The rule also binds a
 * host that has lost its memory.
 *
 * Context of all: any; never sleeps. Externally serialised by the caller.
 */
#ifndef WEIR_SOFTNIC_ROCE_CM_CM_H
#define WEIR_SOFTNIC_ROCE_CM_CM_H

#include <stdbool.h>
#include <stdint.h>

#include "softnic/roce_cm/mad.h"

#define ROCE_CM_NEVER UINT64_MAX

enum {
	ROCE_CM_CONNS_MAX = 1 << 16,
	ROCE_CM_KEPT = 4, /* 1/4 of a table is for connections that this end asks for */
	ROCE_CM_REFUSALS = 16, /* answers to strangers that wait to be sent; a power of 2 */
};

enum roce_cm_state {
	ROCE_CM_FREE,
	ROCE_CM_REQ_SENT, /* or SIDR_REQ */
	ROCE_CM_REQ_RCVD, /* or SIDR_REQ */
	ROCE_CM_REP_SENT,
	ROCE_CM_REP_RCVD,
	ROCE_CM_ESTABLISHED,
	ROCE_CM_DREQ_SENT,
	ROCE_CM_TIMEWAIT,
	ROCE_CM_ENDED, /* waits for roce_cm_release() */
};

/* The order in which the events of a connection are told. */
enum roce_cm_event_kind {
	ROCE_CM_REQUEST, /* accept, reject or wait; has a message: REQ or SIDR_REQ */
	ROCE_CM_REPLY, /* confirm or reject; has a message: REP, or SIDR_REP: that is the end */
	ROCE_CM_IS_ESTABLISHED,
	ROCE_CM_REJECTED, /* has a message: REJ; the end */
	ROCE_CM_UNREACHABLE, /* no answer; the end */
	ROCE_CM_DISCONNECTED, /* by either side, or the peer has forgotten the connection */
	ROCE_CM_FINISHED, /* the time in which late packets may come is over; the end */
	ROCE_CM_EVENTS,
};

/**
 * struct roce_cm_path - how messages reach a host; of the fields, only @peer counts here
 * @peer: GID of the host at the other end; @local: of this end
 * @ifindex: of the interface if @peer is a link-local address
 * @port: of the peer's socket
 */
struct roce_cm_path {
	uint8_t peer[ROCE_MAD_GID_BYTES], local[ROCE_MAD_GID_BYTES];
	uint32_t ifindex;
	uint16_t port;
};

/**
 * struct roce_cm_conn - a connection; fields are the manager's, and for reading only
 * @context: the caller's
 * @path: the last by which the peer has been heard
 * @last: REQ, REP or DREQ: repeated until its answer
 * @reply: RTU, MRA, DREP or SIDR_REP: sent again when its request comes again
 * @heard: the message of the first event
 * @qpn, @remote_qpn: of the queue pairs, 0 before they are known
 * @deadline_ns: for the answer to @last, or of the time wait
 * @timeout_ns: for one answer; @wait_ns: of the time wait
 * @sends_left: repetitions of @last
 * @events: bits of enum roce_cm_event_kind, not told yet
 * @sends_last, @sends_reply: not sent yet
 * @is_released: the caller knows it no more
 */
struct roce_cm_conn {
	void *context;
	enum roce_cm_state state;
	struct roce_cm_path path;
	struct roce_mad last, reply, heard;
	uint64_t remote_guid, tid;
	uint32_t local_id, remote_id, qpn, remote_qpn;
	uint64_t deadline_ns, timeout_ns, wait_ns;
	uint8_t sends_left, max_retries;
	uint8_t events;
	bool sends_last, sends_reply, is_released, is_sidr;
};

struct roce_cm_refusal {
	struct roce_cm_path path;
	struct roce_mad mad;
};

/**
 * struct roce_cm - a connection manager
 * @nr_used: connections from there on have never been in use
 * @ca_guid: of this device
 * @random: state of the generator of IDs
 * @prefix: the upper @prefix_bits of all communication IDs
 * @place_mask: of the lower bits of a communication ID: the index of its connection
 * @refusals: from @refusals_head to @refusals_tail; a refusal too many is dropped,
 *	and its peer asks again
 * @turn: where the next message and event are looked for, so that no connection waits for ever
 */
struct roce_cm {
	struct roce_cm_conn *conns;
	uint32_t nr_conns, nr_used;
	uint32_t turn;
	uint64_t ca_guid;
	uint64_t random;
	uint32_t prefix, prefix_bits, place_mask;
	struct roce_cm_refusal refusals[ROCE_CM_REFUSALS];
	uint32_t refusals_head, refusals_tail;
};

struct roce_cm_event {
	enum roce_cm_event_kind kind;
	struct roce_cm_conn *conn;
	const struct roce_mad *mad; /* until the next call; NULL if the kind has none */
};

/**
 * roce_cm_init() - an idle connection manager
 * @conns: *kept until* the end; @nr_conns: at most ROCE_CM_CONNS_MAX
 * @seed: secret and random, because IDs follow from it
 */
void roce_cm_init(struct roce_cm *cm, struct roce_cm_conn *conns, uint32_t nr_conns,
		  uint64_t ca_guid, uint64_t seed);

/**
 * roce_cm_set_prefix() - share the communication IDs of one host with other managers
 * @prefix: differs between the managers; @bits: its size, at most 15
 */
void roce_cm_set_prefix(struct roce_cm *cm, uint32_t prefix, uint32_t bits);

/**
 * roce_cm_connect() - ask a peer for a connection, or for the queue pair of a service
 * @req: a REQ or SIDR_REQ without IDs. @max_cm_retries of a SIDR_REQ counts, too
 * @conn: the caller owes roce_cm_release()
 *
 * Return: 0, or
 *	-ENOBUFS all connections are in use: try later;
 *	-EINVAL  not such a message.
 */
int roce_cm_connect(struct roce_cm *cm, const struct roce_mad *req, const struct roce_cm_path *path,
		    uint64_t now_ns, struct roce_cm_conn **conn);

/**
 * roce_cm_repeat() - send the request of roce_cm_connect() again, before its time
 *
 * Uses up no repetition. Return: false: the peer has answered, if only by the wish for patience.
 */
bool roce_cm_repeat(struct roce_cm *cm, struct roce_cm_conn *conn, uint64_t now_ns);

/**
 * roce_cm_accept() - answer ROCE_CM_REQUEST with yes
 * @rep: a REP without IDs, or SIDR_REP with the status
 *
 * Return: 0, or -EINVAL: the peer has given up, or a wrong kind of message.
 */
int roce_cm_accept(struct roce_cm *cm, struct roce_cm_conn *conn, const struct roce_mad *rep,
		   uint64_t now_ns);

/**
 * roce_cm_reject() - answer ROCE_CM_REQUEST or ROCE_CM_REPLY with no
 * @private_data: or NULL; @length: at most that of a REJ
 *
 * Ends the connection without an event.
 *
 * Return: 0, or -EINVAL: nothing to reject.
 */
int roce_cm_reject(struct roce_cm *cm, struct roce_cm_conn *conn, uint16_t reason,
		   const uint8_t *private_data, size_t length);

/** roce_cm_wait() - ask the peer for patience (MRA). Return: 0, or -EINVAL: nothing to answer */
int roce_cm_wait(struct roce_cm *cm, struct roce_cm_conn *conn, uint8_t service_timeout);

/**
 * roce_cm_confirm() - answer ROCE_CM_REPLY with yes; the connection is established
 *
 * Return: 0, or -EINVAL: the peer has given up.
 */
int roce_cm_confirm(struct roce_cm *cm, struct roce_cm_conn *conn);

/** roce_cm_heard_packet() - the queue pair has received: the RTU that got lost is not missed */
void roce_cm_heard_packet(struct roce_cm *cm, struct roce_cm_conn *conn);

/** roce_cm_disconnect() - Return: 0, or -EINVAL: not established */
int roce_cm_disconnect(struct roce_cm *cm, struct roce_cm_conn *conn, uint64_t now_ns);

/**
 * roce_cm_release() - give a connection back; no further event names the connection
 *
 * A connection that is still open is closed by the messages that the peer expects.
 */
void roce_cm_release(struct roce_cm *cm, struct roce_cm_conn *conn, uint64_t now_ns);

/**
 * roce_cm_received() - a message came by @path
 *
 * The host refuses a service by roce_cm_reject() with ROCE_MAD_INVALID_SERVICE.
 */
void roce_cm_received(struct roce_cm *cm, const struct roce_mad *m, const struct roce_cm_path *path,
		      uint64_t now_ns);

/** roce_cm_knows() - has this REQ or SIDR_REQ been received before, and is it remembered? */
bool roce_cm_knows(struct roce_cm *cm, const struct roce_mad *req, const struct roce_cm_path *path);

/** roce_cm_expired() - time has passed; too early: no-op */
void roce_cm_expired(struct roce_cm *cm, uint64_t now_ns);

/** roce_cm_deadline_ns() - when to call roce_cm_expired(), or ROCE_CM_NEVER */
uint64_t roce_cm_deadline_ns(const struct roce_cm *cm);

/** roce_cm_next_mad() - takes a message to send by @path. Return: false: none */
bool roce_cm_next_mad(struct roce_cm *cm, struct roce_mad *m, struct roce_cm_path *path);

/** roce_cm_next_event() - takes an event. Return: false: none */
bool roce_cm_next_event(struct roce_cm *cm, struct roce_cm_event *event);

#endif
