/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Muxes: many connections over few queue pairs, shared fairly.
 *
 * A mux is a process's end of many connections. It has a queue pair per class to each remote mux,
 * regardless of the number of connections. The first level of classes has its own shared receive
 * queue; all lower levels share another. A poller thread takes in arrivals. For each remote mux, a
 * worker thread posts segments in the order that core/sched decides: classes by level and weight,
 * connections of a class by weight, a segment per turn. Idle threads sleep.
 *
 *	weir_mux_open(&options, &mux, &error);
 *	weir_mux_connect(mux, "host:7475", 5, NULL, &conn, &error);
 *	weir_mux_conn_send(conn, data, length, 0);
 *	weir_mux_conn_recv(conn, buffer, sizeof(buffer), &length, 0);
 *	weir_mux_conn_close(conn);
 *	weir_mux_close(mux);
 *
 * Alternatively, many processes share a daemon's mux ('weir share'), by option share or environment
 * variable WEIR_SHARE. The calls are the same. Only the daemon accesses the device. The daemon also
 * maps the memory that contains the rings of its clients' connections.
 *
 * Connections carry whole messages, in order. Each connection has its own window at the receiver,
 * and the sender never exceeds the window. A slow reader thus delays its own connection only.
 */
#ifndef WEIR_MUX_H
#define WEIR_MUX_H

#include <stddef.h>
#include <stdint.h>
#include <weir/error.h>
#include <weir/key.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_MUX_MESSAGE_MAX (1u << 30) /* bytes of one message */
#define WEIR_MUX_CLASSES_MAX 8

struct weir_mux;
struct weir_mux_listener;
struct weir_mux_conn;

/* The default classes. */
enum weir_mux_default_class {
	WEIR_MUX_CLASS_URGENT, /* sent first */
	/* sent when no urgent data waits, and at least a 17th of the bytes */
	WEIR_MUX_CLASS_NORMAL,
};

/* How the connections of a class share the bandwidth of the class. */
enum weir_mux_policy {
	WEIR_MUX_POLICY_FAIR, /* by bytes and weight */
	WEIR_MUX_POLICY_ROUND_ROBIN, /* segment by segment, regardless of length */
};

/*
 * A class. Both ends must use the same number of classes. Zero means the default in every field but
 * the size.
 */
struct weir_mux_class {
	size_t size; /* sizeof(struct weir_mux_class) */
	unsigned int level; /* lower levels go first; must not decrease from class to class */
	unsigned int weight; /* among the classes of its level, 1 to 1024; default 1 */
	enum weir_mux_policy policy;
	uint32_t segment_bytes; /* bytes sent per turn, 1024 to 65536; default 65536 */
	unsigned int depth; /* segments in flight per connection, over one QP, 1 to 64; default 4 */
	unsigned int tos; /* type of service of the packets, 0 to 255; default 0 */
	/* bytes that higher levels may send while this class waits; 0: any number */
	uint64_t pass_bytes_max;
};

/* How to open a mux. Zero means the default in every field but the size. */
struct weir_mux_options {
	size_t size; /* sizeof(struct weir_mux_options) */
	/*
	 * "host:port" where peers connect; NULL: no peer can. The port defaults to
	 * WEIR_PORT_DEFAULT; port 0 means any free port.
	 */
	const char *listen;
	/* use only this verbs device; NULL: the device of @listen, or the first by name */
	const char *device;
	const struct weir_key *key; /* NULL: no key (loopback only); kept until close */
	/* NULL: the classes of enum weir_mux_default_class; copied */
	const struct weir_mux_class *classes;
	unsigned int nr_classes; /* number of @classes, 1 to WEIR_MUX_CLASSES_MAX */
	/*
	 * Most bytes in flight to all remote muxes together from all levels below the first;
	 * default 128 KiB. Set it to the wire's bandwidth-delay product. If larger, the limit is a
	 * segment per competing connection, plus a segment of a connection that was alone until
	 * then.
	 */
	uint64_t low_bytes_max;
	unsigned int connections_max; /* concurrent connections, 1 to 65535; default 4096 */
	/*
	 * Ring size of a connection, per direction: a power of two, 4 KiB to 64 MiB; default 256
	 * KiB. A connection of weight w above 2 gets w / 2 times as much, up to 16 times, so that
	 * its ring never runs empty between turns.
	 */
	uint32_t ring_bytes;
	/*
	 * Shared receive buffers of 64 KiB, 8 to 4096; default 64. The first level gets a quarter
	 * as many for itself, 8 at least.
	 */
	unsigned int buffers;
	/* For connecting, and for sending pending data at close; default 10 s. */
	uint64_t timeout_ns;
	/*
	 * Socket of the 'weir share' daemon to use. The daemon's operator then decides all other
	 * options, and this struct's are ignored. NULL: the value of $WEIR_SHARE or, without the
	 * variable, a mux of this process. "": always a mux of this process.
	 */
	const char *share;
	uint64_t idle_poll_ns; /* how long an idle thread polls before it sleeps; default 50 us */
	/*
	 * How long queue pairs and worker thread of a remote mux without connections are kept;
	 * default 10 s; UINT64_MAX: for ever.
	 */
	uint64_t idle_ns;
	uint64_t encryption; /* enum weir_encryption, for muxes on other hosts */
	/* by which dialling muxes know this one; copied; NULL: another one each time */
	const struct weir_identity *identity;
	/*
	 * 32 bytes, copied: the public key of the only mux to trust when this one dials; see
	 * weir_identity_public(). NULL: those that the file of @key names, or else any that knows
	 * the key. With such a choice, connections of this mux use no queue pair that others have
	 * dialled.
	 */
	const unsigned char *peer_identity;
};

/**
 * weir_mux_open() - open a mux
 * @options: NULL for defaults; copied
 * @mux: receives the mux
 * @error: may be NULL
 *
 * The caller owes a weir_mux_close().
 *
 * Context: Any thread.
 * Return: 0, or
 *	-EINVAL        an option is out of range;
 *	-E2BIG         an option that this library does not know;
 *	-ENODEV        no verbs device;
 *	-EADDRINUSE    another process listens at the address;
 *	-EPERM         without a key, only loopback addresses are allowed;
 *	-ECONNREFUSED  no daemon at the socket, or the daemon refuses this user;
 *	-ENOMEM        out of memory, or over the locked-memory limit (@error says so).
 */
int weir_mux_open(const struct weir_mux_options *options, struct weir_mux **mux,
		  struct weir_error *error);

/**
 * weir_mux_close() - close a mux
 * @mux: no other call on the mux may be under way; all regions must be closed
 *
 * Closes the connections that are still open. Waits, up to the timeout, until the pending data of
 * closed connections is sent: a peer that reads slowly may take that long. Then ends the listeners,
 * and the connections that are left: their peers get -ECONNRESET, as from a process that died.
 *
 * Context: Any thread; sleeps.
 */
void weir_mux_close(struct weir_mux *mux);

/* Totals since open, and present state. */
struct weir_mux_info {
	size_t size; /* bytes that the library has written */
	char address[64]; /* where the mux listens, or "" */
	unsigned int connections, queue_pairs; /* now */
	uint64_t work_requests, doorbells; /* work requests posted, and calls that posted them */
	uint64_t bytes_sent, bytes_received; /* messages, plus 8 bytes for each */
	uint64_t bytes_written; /* part of bytes_received that the device wrote in place */
	uint64_t credits; /* messages that only grant room */
	uint64_t sleeps; /* by all threads of the mux */
	/*
	 * Most bytes of lower levels in flight, to all remote muxes, when a segment of the first
	 * level was posted.
	 */
	uint64_t ahead_bytes_max;
};

/**
 * weir_mux_info() - read a mux's counters
 * @mux: the mux
 * @info: receives the counters; all zero if the daemon is gone
 * @size: sizeof(*@info)
 *
 * Context: Any thread.
 * Return: 0; -EINVAL @size is too small.
 */
int weir_mux_info(struct weir_mux *mux, struct weir_mux_info *info, size_t size);

/**
 * weir_mux_listen() - offer a service
 * @mux: the mux
 * @service: the number that weir_mux_connect() names; any value
 * @backlog: most connections that wait for weir_mux_listener_accept(), at least 1; further ones are
 *	refused
 * @listener: receives the listener
 *
 * The caller owes a weir_mux_listener_close().
 *
 * Context: Any thread.
 * Return: 0; -EINVAL; -EADDRINUSE the service is offered already; -ENOMEM.
 */
int weir_mux_listen(struct weir_mux *mux, uint32_t service, unsigned int backlog,
		    struct weir_mux_listener **listener);

/*
 * Context: Any thread; does not block. Return: 0 and @conn; -EAGAIN no connection waits, see
 * weir_mux_listener_fd().
 */
int weir_mux_listener_accept(struct weir_mux_listener *listener, struct weir_mux_conn **conn);

/*
 * Context: Any thread. Return: a descriptor, owned by the listener, which is readable when
 * weir_mux_listener_accept() has a connection.
 */
int weir_mux_listener_fd(const struct weir_mux_listener *listener);

/*
 * Closes the listener, and all connections not accepted yet. Context: Any thread, while no other
 * uses the listener.
 */
void weir_mux_listener_close(struct weir_mux_listener *listener);

/* How to connect. Zero means the default in every field but the size and the class. */
struct weir_mux_conn_options {
	size_t size; /* sizeof(struct weir_mux_conn_options) */
	unsigned int class_nr; /* class number in the mux, such as WEIR_MUX_CLASS_URGENT */
	/*
	 * Weight of this end's sends among the connections of the class, 1 to 1024; default 1. The
	 * accepting end sets its own weight with weir_mux_conn_set_weight().
	 */
	unsigned int weight;
	/*
	 * Size of the rings at both ends, for connections with large messages. A receiver of a
	 * message that fits the ring is woken once or twice per message, otherwise for each half of
	 * a ring. Rounded up to the mux's own ring_bytes times 1, 2, 4, 8 or 16; default: by
	 * weight.
	 */
	uint64_t ring_bytes;
};

/**
 * weir_mux_connect() - connect to a service of another mux
 * @mux: the mux
 * @peer: "host", "host:port" or "[v6]:port"
 * @service: the service's number
 * @options: NULL: the last class, weight 1
 * @conn: receives the connection
 * @error: may be NULL
 *
 * The first connection to a mux, and the first of a class, create the queue pair and prove the key.
 * Further connections take a single round trip. Blocks up to the mux's timeout, plus the time to
 * resolve @peer. The caller owes a weir_mux_conn_close().
 *
 * Context: Any thread; sleeps.
 * Return: 0, or
 *	-EINVAL           a malformed name or option;
 *	-E2BIG            an option that this library does not know;
 *	-ENODEV           no verbs device;
 *	-EHOSTUNREACH     no route to the peer;
 *	-ECONNREFUSED     the service is not offered, or no process listens;
 *	-EAGAIN           the listener's backlog is full;
 *	-EPERM            an operator does not permit the class for this user;
 *	-EKEYREJECTED     either side failed to prove the key, or the peer has another identity;
 *	-EPROTO           the peer sent an invalid reply;
 *	-EPROTONOSUPPORT  the peer speaks another version;
 *	-EDQUOT           an end is at its limit of connections, or this end at its limit of remote
 *	                  muxes;
 *	-ECONNRESET, -ETIMEDOUT, -ENOMEM.
 */
int weir_mux_connect(struct weir_mux *mux, const char *peer, uint32_t service,
		     const struct weir_mux_conn_options *options, struct weir_mux_conn **conn,
		     struct weir_error *error);

/**
 * weir_mux_conn_set_weight() - change a connection's weight
 * @conn: the connection
 * @weight: of this end's sends among the connections of the class, 1 to 1024, from the next round
 *	on. An accepted connection starts with 1
 *
 * The rings keep the size that the connecting end's weight gave them. A larger weight takes effect
 * only as far as the ring has room.
 *
 * Context: Any thread, one at a time per connection.
 * Return: 0; -EINVAL; -ECONNRESET the daemon is gone.
 */
int weir_mux_conn_set_weight(struct weir_mux_conn *conn, unsigned int weight);

/* For @flags of send and receive calls. */
#define WEIR_MUX_CONN_DONTWAIT 1

/**
 * weir_mux_conn_send() - send a message
 * @conn: the connection
 * @data: copied into the connection's ring, from which the device reads; the caller's again on
 *	return 0. To send large messages without a copy, see weir_mux_conn_send_region()
 * @length: bytes, at most WEIR_MUX_MESSAGE_MAX
 * @flags: 0 or WEIR_MUX_CONN_DONTWAIT
 *
 * Blocks while the ring is full, except with WEIR_MUX_CONN_DONTWAIT. After -EAGAIN a part may be in
 * the ring: the caller owes the same call with the same message once weir_mux_conn_room_fd() is
 * readable.
 *
 * Context: Any thread; one at a time per connection.
 * Return: 0 (the message arrives unless the connection breaks), or
 *	-EAGAIN      the ring is full: call again;
 *	-EMSGSIZE    longer than WEIR_MUX_MESSAGE_MAX;
 *	-EINVAL      the ring holds more of the last message than this message has;
 *	-ENOTCONN    the other end has closed;
 *	-ECONNRESET  the connection is lost.
 */
int weir_mux_conn_send(struct weir_mux_conn *conn, const void *data, size_t length, int flags);

/**
 * weir_mux_conn_recv() - receive a message
 * @conn: the connection
 * @buffer: receives the message
 * @size: bytes that fit at @buffer
 * @length: receives the message's length, also with -EMSGSIZE
 * @flags: 0 or WEIR_MUX_CONN_DONTWAIT
 *
 * Blocks until a message arrives, except with WEIR_MUX_CONN_DONTWAIT. After -EAGAIN a part may be
 * in @buffer: the next call must pass the same buffer. To receive large messages without a copy,
 * see weir_mux_conn_take().
 *
 * Context: Any thread; one at a time per connection, besides a sender.
 * Return: 0, or
 *	-EAGAIN      no complete message: call again;
 *	-EMSGSIZE    longer than @size; the message stays;
 *	-EINVAL      weir_mux_conn_take() has taken a part;
 *	-ENOTCONN    the other end has closed, and all its messages are read;
 *	-ECONNRESET  the connection is lost, and all messages that arrived are read.
 */
int weir_mux_conn_recv(struct weir_mux_conn *conn, void *buffer, size_t size, size_t *length,
		       int flags);

/* A part of a message in place: @length bytes from byte @at of a message of @total bytes. */
struct weir_mux_conn_part {
	const void *data;
	size_t length, at, total;
};

/**
 * weir_mux_conn_take() - receive a part of a message without a copy
 * @conn: the connection
 * @part: receives as much as is contiguous. The last part ends at @total. An empty message has a
 *	single, empty part
 * @flags: 0 or WEIR_MUX_CONN_DONTWAIT
 *
 * The part lies in the connection's ring. The caller may read it until weir_mux_conn_give(), which
 * is due before the next call. A held part delays only the sender of this connection. The caller
 * must take all parts of a message, and must not have received any of it by weir_mux_conn_recv().
 *
 * The remote mux, which has proven the key, could still write to the part if it violated the
 * protocol. A caller that does not trust the remote mux copies data before checking it.
 *
 * Context: As for weir_mux_conn_recv(); the two calls exclude each other.
 * Return: 0, or
 *	-EAGAIN  nothing has arrived: call again;
 *	-EINVAL  a part is still held, or weir_mux_conn_recv() has begun the message;
 *	-ENOTCONN, -ECONNRESET as for weir_mux_conn_recv().
 */
int weir_mux_conn_take(struct weir_mux_conn *conn, struct weir_mux_conn_part *part, int flags);

/* Returns the held part to the sender, if one is held. Context: As for weir_mux_conn_take(). */
void weir_mux_conn_give(struct weir_mux_conn *conn);

/*
 * A region: memory registered by the mux, and also mapped by the daemon if the mux is a daemon's.
 * The device accesses the memory in place: regions are for data too large to copy.
 */
struct weir_mux_region;

/**
 * weir_mux_region_open() - get zeroed, registered memory
 * @mux: the mux
 * @length: bytes, at least 1
 * @region: receives the region
 *
 * The caller owes a weir_mux_region_close().
 *
 * Context: Any thread.
 * Return: 0, or
 *	-EDQUOT  1024 regions exist (with a daemon: of all processes of the user), or the daemon
 *	         grants no more memory;
 *	-EINVAL, -ENOMEM, -ECONNRESET.
 */
int weir_mux_region_open(struct weir_mux *mux, size_t length, struct weir_mux_region **region);

/* Context: Any thread. Return: the region's first byte. */
void *weir_mux_region_data(const struct weir_mux_region *region);

/**
 * weir_mux_region_close() - free a region
 * @region: not in use by any call
 *
 * Waits for the remote ends of closed connections, and for data still being sent from the region.
 *
 * Context: Any thread; sleeps.
 * Return: 0, or
 *	-EBUSY       granted on an open connection: call weir_mux_conn_withdraw() first;
 *	-ECONNRESET  the daemon is gone, and so is the region;
 *	-ETIMEDOUT.
 */
int weir_mux_region_close(struct weir_mux_region *region);

/**
 * weir_mux_conn_send_region() - send a message from a region without a copy
 * @conn: the connection
 * @region: a region of the same mux
 * @at: offset of the message in @region
 * @length: bytes, 1 to WEIR_MUX_MESSAGE_MAX
 * @flags: 0 or WEIR_MUX_CONN_DONTWAIT
 *
 * The device reads the message in place, segment by segment, in the connection's turns and after
 * earlier messages. The memory belongs to the mux and must not change until the call returns
 * anything but -EAGAIN. The receiver copies the message out of its ring as usual, or takes it in
 * place by weir_mux_conn_take().
 *
 * Blocks until everything is sent, except with WEIR_MUX_CONN_DONTWAIT. After -EAGAIN the caller
 * owes the same call once weir_mux_conn_room_fd() is readable, and must not send anything else
 * before.
 *
 * Context: Any thread; one at a time per connection, together with weir_mux_conn_send().
 * Return: 0 (everything is sent), or
 *	-EAGAIN      not everything is sent: call again;
 *	-EMSGSIZE    longer than WEIR_MUX_MESSAGE_MAX;
 *	-EINVAL      beyond the region's end, or another message is incomplete;
 *	-ENOTCONN    the other end has closed;
 *	-ECONNRESET  the connection is lost; the device may read the memory until the region is
 *	             closed;
 *	-EPROTO      the region belongs to another mux; the connection is lost.
 */
int weir_mux_conn_send_region(struct weir_mux_conn *conn, const struct weir_mux_region *region,
			      uint64_t at, uint64_t length, int flags);

/*
 * One-sided reads and writes between the memories of the two ends, without a copy and without the
 * other end's CPU. The owner of a region grants a part of it to the other end of a connection, and
 * sends the handle in a message. The handle is useless to all other peers.
 */
#define WEIR_MUX_MAY_READ 1u
#define WEIR_MUX_MAY_WRITE 2u

/**
 * weir_mux_conn_grant() - let the other end of a connection access a part of a region
 * @conn: the connection
 * @region: the region
 * @at: offset of the part
 * @length: bytes of the part
 * @rights: WEIR_MUX_MAY_READ, WEIR_MUX_MAY_WRITE or both
 * @handle: receives the handle, valid on this connection only. Messages sent after this call arrive
 *	when the other end knows the handle
 *
 * The caller owes a weir_mux_conn_withdraw() before it closes the region on an open connection.
 *
 * Context: Any thread.
 * Return: 0, or
 *	-EINVAL  beyond the region's end, or no rights;
 *	-EDQUOT  16 grants exist already;
 *	-ENOTCONN, -ETIMEDOUT, -ECONNRESET.
 */
int weir_mux_conn_grant(struct weir_mux_conn *conn, const struct weir_mux_region *region,
			uint64_t at, uint64_t length, unsigned int rights, uint32_t *handle);

/**
 * weir_mux_conn_withdraw() - revoke a grant
 * @conn: the connection
 * @handle: from weir_mux_conn_grant()
 *
 * After a return of 0, no access by this handle is in progress or possible.
 *
 * Context: Any thread.
 * Return: 0; -EINVAL no such handle; -ETIMEDOUT; -ECONNRESET.
 */
int weir_mux_conn_withdraw(struct weir_mux_conn *conn, uint32_t handle);

/**
 * weir_mux_conn_write() - write into the other end's memory
 * @conn: the connection
 * @handle: the other end's grant
 * @there: offset in the granted part
 * @region: source region of this mux
 * @at: offset of the data in @region
 * @length: bytes, at least 1
 *
 * Blocks until all bytes have arrived. The scheduler treats the write like a message, a segment per
 * turn.
 *
 * Context: Any thread; one weir_mux_conn_write() or weir_mux_conn_read() at a time per connection.
 * Return: 0, or
 *	-EACCES      no such handle, beyond its end, or without the right;
 *	-EINVAL      beyond the region's end;
 *	-ENOTCONN    the other end has closed;
 *	-ECONNRESET  the connection is lost; the write may still take effect until the region is
 *	             closed.
 */
int weir_mux_conn_write(struct weir_mux_conn *conn, uint32_t handle, uint64_t there,
			const struct weir_mux_region *region, uint64_t at, uint64_t length);

/*
 * The reverse of weir_mux_conn_write(): reads the other end's memory into the region. Context,
 * Return: as for weir_mux_conn_write().
 */
int weir_mux_conn_read(struct weir_mux_conn *conn, uint32_t handle, uint64_t there,
		       const struct weir_mux_region *region, uint64_t at, uint64_t length);

/**
 * weir_mux_conn_fd() - a descriptor for poll(2) and epoll(7)
 * @conn: the connection, which owns the descriptor
 *
 * Readable when weir_mux_conn_recv() may make progress. Until a receive has returned -EAGAIN, the
 * descriptor may also be readable for no reason. The first call creates the descriptor.
 *
 * Context: Any thread.
 * Return: the descriptor; -ENOMEM; with a shared mux also -EMFILE and -ECONNRESET.
 */
int weir_mux_conn_fd(struct weir_mux_conn *conn);

/* The same for weir_mux_conn_send(). Context, Return: as for weir_mux_conn_fd(). */
int weir_mux_conn_room_fd(struct weir_mux_conn *conn);

/**
 * weir_mux_conn_close() - close a connection in both directions
 * @conn: no other call on the connection may be under way
 *
 * Returns at once. Data already sent still arrives as long as the other end reads and the mux stays
 * open. Unread data is dropped.
 *
 * Context: Any thread.
 */
void weir_mux_conn_close(struct weir_mux_conn *conn);

#ifdef __cplusplus
}
#endif
#endif
