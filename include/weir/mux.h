/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Muxes: many connections over few queue pairs, shared fairly.
 *
 * A mux is a process's end of all that. To each other mux it has one queue pair a class,
 * however many connections there are; a shared receive queue for the first level of its classes,
 * and one for all below; a thread that takes in what arrives; and for each other mux one that
 * posts, in the order that core/sched decides: classes by level and weight, the connections of a
 * class by theirs, one segment at a turn. The threads sleep when nothing is to be done.
 *
 *	weir_mux_open(&options, &mux, &error);
 *	weir_mux_connect(mux, "host:7475", 5, NULL, &conn, &error);
 *	weir_mux_conn_send(conn, data, length, 0);
 *	weir_mux_conn_recv(conn, buffer, sizeof(buffer), &length, 0);
 *	weir_mux_conn_close(conn);
 *	weir_mux_close(mux);
 *
 * Or the mux is a daemon's that many processes share ('weir share'): option share, or the
 * environment variable WEIR_SHARE. The calls are the same. No such process touches a device: the
 * daemon alone does, and maps the memory that their connections' rings are in.
 *
 * Connections carry messages, whole and in order. One whose reader does not read is held
 * back, and no other: each has a window at the receiver, and nothing is sent beyond it.
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

/* The classes there are if nobody says otherwise. */
enum weir_mux_class_nr {
	WEIR_MUX_CLASS_URGENT, /* goes first */
	WEIR_MUX_CLASS_NORMAL, /* what nobody urgent needs, and at least a 17th */
};

/* How the connections of a class share what is theirs. */
enum weir_mux_policy {
	WEIR_MUX_POLICY_FAIR, /* by bytes and weight */
	WEIR_MUX_POLICY_ROUND_ROBIN, /* segment by segment, whatever their length */
};

/* One class; both ends give the same number of them. Zero means the default. */
struct weir_mux_class {
	unsigned int level; /* lower goes first; not falling from class to class */
	unsigned int weight; /* among the classes of its level, 1 to 1024; default 1 */
	enum weir_mux_policy share;
	uint32_t segment_bytes; /* sent at a turn, 1024 to 65536; default 65536 */
	unsigned int depth; /* segments of one connection in flight, 1 to 64; default 4 */
	uint64_t pass_bytes_max; /* higher levels send so much while it waits; 0: any amount */
	uint8_t tos; /* type of service of its packets; default 0 */
};

/* How to open a mux; zero means the default everywhere. */
struct weir_mux_options {
	const char *listen; /* "host:port", where others connect; NULL: they cannot. The port
			     * defaults to WEIR_PORT_DEFAULT; port 0: any that is free */
	const char *device; /* only this verbs device; NULL: @listen's, or the first by name */
	const struct weir_key *key; /* NULL: none is wanted (loopback only); kept until close */
	const struct weir_mux_class *classes; /* NULL: those of enum weir_mux_class_nr; copied */
	unsigned int nr_classes; /* 1 to WEIR_MUX_CLASSES_MAX, with @classes */
	uint64_t low_bytes_max; /* all below the first level have in flight, to all other muxes
				 * together, or one segment for each connection that competes, if
				 * that is more, and one of who was alone until then: the wire's
				 * bandwidth by its delay; default 128 KiB */
	unsigned int connections_max; /* at once, 1 to 65535; default 4096 */
	uint32_t ring_bytes; /* of a connection, in either direction: a power of two, 4 KiB to
			      * 64 MiB; default 256 KiB. One of weight w above 2 has w / 2 times
			      * that, up to 16 times, to always have something to send */
	unsigned int buffers; /* receives of 64 KiB that all share, 8 to 4096; default 64; and a
			       * quarter as many, 8 at least, that the first level has for itself */
	uint64_t timeout_ns; /* of connecting, and of what is still to be sent at the end; default
			      * 10 s */
	const char *share; /* the socket of the 'weir share' whose tenant to be: all options above
			    * and below are its operator's then, and not looked at. NULL: what
			    * $WEIR_SHARE says; "": a mux of this process's own, also where no such
			    * variable is set */
	uint64_t quiet_ns; /* a thread with nothing to do looks for so long before it sleeps;
			    * default 50 us */
	uint64_t idle_ns; /* another mux to which there is no connection keeps its queue pairs, and
			   * the thread that posts on them, for so long; default 10 s; UINT64_MAX:
			   * for ever */
};

/**
 * weir_mux_open() - be able to connect, and to be connected to
 * @options: NULL for defaults; copied
 * @mux: receives it; close it with weir_mux_close()
 * @error: may be NULL
 *
 * Context: any thread.
 * Return: 0; -EINVAL an option is out of its range; -ENODEV no verbs device; -EADDRINUSE; -EPERM
 * listening beyond loopback without a key; -ECONNREFUSED there is no daemon at the socket, or it
 * lets this user not in; -ENOMEM (also locked-memory limit: the text says so).
 */
int weir_mux_open(const struct weir_mux_options *options, struct weir_mux **mux,
		  struct weir_error *error);

/**
 * weir_mux_close() - end everything
 *
 * Waits, up to the timeout, until what connections that have been closed still had to send is
 * sent. No other call may be under way. Connections and listeners that have not been closed are
 * ended, and gone. Regions have been closed before.
 * Context: any thread.
 */
void weir_mux_close(struct weir_mux *mux);

/* So far, and now. */
struct weir_mux_info {
	char address[64]; /* where it listens, or "" */
	unsigned int connections, queue_pairs; /* now */
	uint64_t work_requests, doorbells; /* posted, and calls that posted them */
	uint64_t bytes_sent, bytes_received; /* messages, and 8 bytes for each */
	uint64_t bytes_written; /* of those received: by the device, where they belong */
	uint64_t credits; /* messages that only said that there is room again */
	uint64_t sleeps; /* of all its threads */
	uint64_t ahead_bytes_max; /* of lower levels, in flight to whomever when one of the first
				   * was posted */
};

/* Context: any thread. */
void weir_mux_info(struct weir_mux *mux, struct weir_mux_info *info);

/**
 * weir_mux_listen() - offer a service
 * @service: what weir_mux_connect() names, any number
 * @backlog: connections that may wait for weir_mux_listener_accept(), at least 1; more are refused
 * @listener: receives it; close it with weir_mux_listener_close()
 *
 * Context: any thread.
 * Return: 0; -EINVAL; -EADDRINUSE somebody offers it already; -ENOMEM.
 */
int weir_mux_listen(struct weir_mux *mux, uint32_t service, unsigned int backlog,
		    struct weir_mux_listener **listener);

/* Return: 0 and @conn; -EAGAIN nobody has connected, see weir_mux_listener_fd(). */
int weir_mux_listener_accept(struct weir_mux_listener *listener, struct weir_mux_conn **conn);

/* Readable when weir_mux_listener_accept() has something. The listener's. */
int weir_mux_listener_fd(const struct weir_mux_listener *listener);

/* Who has not been accepted is closed. */
void weir_mux_listener_close(struct weir_mux_listener *listener);

struct weir_mux_conn_options {
	unsigned int
		class_nr; /* its class: WEIR_MUX_CLASS_URGENT, or another number of the mux's */
	/*
	 * Among the connections of its class, 1 to 1024; default 1. Of what this end sends: who
	 * accepts says his own, by weir_mux_conn_weigh().
	 */
	unsigned int weight;
	/*
	 * Of its rings, at both ends, for who sends large messages: who waits for one that fits is
	 * woken once or twice for it, and else for each half of a ring. Rounded up to what the mux
	 * can give: its own ring_bytes times 1, 2, 4, 8 or 16; default: as its weight wants.
	 */
	uint32_t ring_bytes;
};

/**
 * weir_mux_connect() - connect to a service of another mux
 * @peer: "host", "host:port", "[v6]:port"
 * @options: NULL: the last class, weight 1
 * @conn: receives the connection; close it with weir_mux_conn_close()
 * @error: may be NULL
 *
 * The first to a mux, and the first of a class, make the queue pair and prove the key; the others
 * take one message there and back. Blocks up to the mux's timeout, and before that, if @peer is a
 * name, for as long as the resolver takes. Context: any thread.
 * Return: 0; -EINVAL; -ENODEV; -EHOSTUNREACH; -ECONNREFUSED nobody offers the service, or listens
 * at all; -EAGAIN too many wait to be accepted; -EPERM the class is not for one of the two, as its
 * operator says; -EKEYREJECTED; -EPROTO; -EPROTONOSUPPORT; -EDQUOT either end has as many
 * connections as it may, or this one as many other muxes; -ECONNRESET; -ETIMEDOUT; -ENOMEM.
 */
int weir_mux_connect(struct weir_mux *mux, const char *peer, uint32_t service,
		     const struct weir_mux_conn_options *options, struct weir_mux_conn **conn,
		     struct weir_error *error);

/**
 * weir_mux_conn_weigh() - another weight for a connection
 * @weight: among the connections of its class, 1 to 1024: of what this end sends, from its next
 *	round on. Who has accepted one begins with 1
 *
 * The rings are as long as the weight of who has connected made them: a larger one than that shows
 * as far as there is room for it.
 *
 * Context: any thread, one at a time for a connection.
 * Return: 0; -EINVAL; -ECONNRESET the daemon is gone.
 */
int weir_mux_conn_weigh(struct weir_mux_conn *conn, unsigned int weight);

/* For @flags of sending and receiving. */
#define WEIR_MUX_CONN_DONTWAIT 1

/**
 * weir_mux_conn_send() - send a message
 * @data, @length: the message, at most WEIR_MUX_MESSAGE_MAX; the caller's again when this returns
 *	0. It is copied into the connection's ring, which the device reads. What is large need
 *	not be: weir_mux_conn_send_region()
 * @flags: 0, or WEIR_MUX_CONN_DONTWAIT
 *
 * Blocks while the ring is full, unless told not to. After -EAGAIN the ring may have taken a part:
 * the caller owes the rest by the same call with the same message, once weir_mux_conn_room_fd()
 * is readable.
 *
 * Context: any thread; one at a time for a connection.
 * Return: 0: it will arrive unless the connection breaks; -EAGAIN; -EMSGSIZE; -EINVAL the ring has
 * taken more of the last message than this one has; -ENOTCONN the other end has closed; -ECONNRESET
 * the connection is lost.
 */
int weir_mux_conn_send(struct weir_mux_conn *conn, const void *data, size_t length, int flags);

/**
 * weir_mux_conn_recv() - receive a message
 * @buffer, @size: where it goes
 * @length: receives its length; with -EMSGSIZE, too
 * @flags: 0, or WEIR_MUX_CONN_DONTWAIT
 *
 * Blocks until a message is there, unless told not to. After -EAGAIN a part of it may be in
 * @buffer: the next call is made with the same buffer. What is large need not be copied:
 * weir_mux_conn_take().
 *
 * Context: any thread; one at a time for a connection; another may send.
 * Return: 0; -EAGAIN; -EMSGSIZE it is longer than @size, and stays; -EINVAL a part of it has been
 * taken; -ENOTCONN the other end has closed, and all that it had sent is read; -ECONNRESET the
 * connection is lost, and all that had arrived is read.
 */
int weir_mux_conn_recv(struct weir_mux_conn *conn, void *buffer, size_t size, size_t *length,
		       int flags);

/* A part of a message, where it lies: @length bytes that begin with byte @at of it, of @total. */
struct weir_mux_conn_part {
	const void *data;
	size_t length, at, total;
};

/**
 * weir_mux_conn_take() - receive a part of a message without copying it
 * @part: receives it: as much as there is, in a row. The last one ends at @total; of an empty
 *	message there is one, which is empty, too
 * @flags: 0, or WEIR_MUX_CONN_DONTWAIT
 *
 * The memory is the connection's ring: it may be read until weir_mux_conn_give() gives it back, which
 * is due before the next call. What is held holds back the other end of this connection, and nobody
 * else. Only a message of which weir_mux_conn_recv() has received nothing can be taken, and who has
 * begun to take one takes all of it. The other end's mux, which has proven the key, could still
 * write there if it broke the rules: who does not trust it copies first what he checks.
 *
 * Context: as weir_mux_conn_recv(), with which it alternates.
 * Return: 0; -EAGAIN; -EINVAL a part has not been given back, or the message has begun otherwise;
 * -ENOTCONN and -ECONNRESET as for weir_mux_conn_recv().
 */
int weir_mux_conn_take(struct weir_mux_conn *conn, struct weir_mux_conn_part *part, int flags);

/* The part that has been taken may be written to again. Nothing happens if there is none. */
void weir_mux_conn_give(struct weir_mux_conn *conn);

/*
 * A region: memory that the mux has registered, which in a tenant's case the daemon maps, too. The
 * device reads and writes it where it lies: it is for what is too large to be copied.
 */
struct weir_mux_region;

/**
 * weir_mux_region_open() - memory that the mux has registered, zeroed
 * @length: bytes, at least 1
 * @region: receives it; close it with weir_mux_region_close()
 *
 * Context: any thread.
 * Return: 0; -EINVAL; -EDQUOT there are 1024 already, of all processes of a user if it is a
 * daemon's mux, or the daemon grants no more memory; -ENOMEM; -ECONNRESET.
 */
int weir_mux_region_open(struct weir_mux *mux, size_t length, struct weir_mux_region **region);

/* Its first byte. */
void *weir_mux_region_data(const struct weir_mux_region *region);

/**
 * weir_mux_region_close() - give the memory back
 *
 * Waits for the other ends of connections that have been closed, and for what is being sent from
 * it.
 * Context: any thread; none sends from it, nor reads or writes with it by weir_mux_conn_read() or
 * weir_mux_conn_write().
 * Return: 0 and it is gone; -EBUSY it is granted on a connection that is open: withdraw it;
 * -ETIMEDOUT; -ECONNRESET the daemon is gone, and so is the region.
 */
int weir_mux_region_close(struct weir_mux_region *region);

/**
 * weir_mux_conn_send_region() - send a message that lies in a region, without copying it
 * @region, @at, @length: the message: a part of a region of the same mux, at least a byte and at
 *	most WEIR_MUX_MESSAGE_MAX
 * @flags: 0, or WEIR_MUX_CONN_DONTWAIT
 *
 * The device reads it where it lies, segment by segment, in the connection's turns and behind what
 * was sent before. The memory is the mux's, and must not change, until the call returns anything
 * but -EAGAIN; 0 says that all has been sent. The other end receives it as any other message:
 * there it is copied out of the ring, unless weir_mux_conn_take() takes it where it lies.
 *
 * Waits until all has been sent, unless told not to. After -EAGAIN the caller owes the same call,
 * once weir_mux_conn_room_fd() is readable; nothing else is sent on the connection before that.
 *
 * Context: any thread; one at a time for a connection, of this and weir_mux_conn_send().
 * Return: 0; -EAGAIN; -EMSGSIZE; -EINVAL beyond the region's end, or another message is owed a
 * call; -ENOTCONN the other end has closed; -ECONNRESET the connection is lost: the device may
 * still read the memory until the region is closed; -EPROTO the region is another mux's, and the
 * connection is lost.
 */
int weir_mux_conn_send_region(struct weir_mux_conn *conn, const struct weir_mux_region *region,
			      uint64_t at, uint64_t length, int flags);

/*
 * One-sided reads and writes: from one end's memory into the other's, without a copy and without
 * the other's CPU. Who has a region grants the other end of a connection a part of it, and tells it
 * the handle by a message; nobody else can do anything with that.
 */
#define WEIR_MUX_MAY_READ 1u
#define WEIR_MUX_MAY_WRITE 2u

/**
 * weir_mux_conn_grant() - let the other end of a connection read or write a part of a region
 * @at, @length: the part
 * @rights: WEIR_MUX_MAY_READ, WEIR_MUX_MAY_WRITE, or both
 * @handle: receives what the other end calls it; of this connection only. A message sent
 *	after this call arrives when it is known there
 *
 * Context: any thread.
 * Return: 0; -EINVAL beyond the region's end, or no rights; -EDQUOT 16 are granted already;
 * -ENOTCONN; -ETIMEDOUT; -ECONNRESET.
 */
int weir_mux_conn_grant(struct weir_mux_conn *conn, const struct weir_mux_region *region,
			uint64_t at, uint64_t length, unsigned int rights, uint32_t *handle);

/**
 * weir_mux_conn_withdraw() - end that
 *
 * When it returns 0 nothing is read or written any more by this handle.
 * Context: any thread.
 * Return: 0; -EINVAL there is no such handle; -ETIMEDOUT; -ECONNRESET.
 */
int weir_mux_conn_withdraw(struct weir_mux_conn *conn, uint32_t handle);

/**
 * weir_mux_conn_write() - write into the other end's memory
 * @handle, @there: as granted, and where in it
 * @region, @at, @length: what is written, at least a byte
 *
 * Waits until all is there. Turns are the scheduler's as for messages, a segment each.
 * Context: any thread; one weir_mux_conn_write() or weir_mux_conn_read() at a time for a connection.
 * Return: 0; -EACCES no such handle, beyond its end, or not with its rights; -EINVAL beyond the
 * region's end; -ENOTCONN the other end has closed; -ECONNRESET the connection is lost: what was
 * under way may still come about until the region is closed.
 */
int weir_mux_conn_write(struct weir_mux_conn *conn, uint32_t handle, uint64_t there,
			const struct weir_mux_region *region, uint64_t at, uint64_t length);

/* The same, from the other end's memory into the region. */
int weir_mux_conn_read(struct weir_mux_conn *conn, uint32_t handle, uint64_t there,
		       const struct weir_mux_region *region, uint64_t at, uint64_t length);

/**
 * weir_mux_conn_fd() - a descriptor for poll(2) and epoll(7)
 *
 * Readable when weir_mux_conn_recv() is worth a call; until it has returned -EAGAIN, also for nothing.
 * The connection's, from the first call on; weir only makes one if asked.
 * Context: any thread.
 * Return: the descriptor; -ENOMEM. Of a mux that is shared also -EMFILE and -ECONNRESET.
 */
int weir_mux_conn_fd(struct weir_mux_conn *conn);

/* The same for weir_mux_conn_send(). */
int weir_mux_conn_room_fd(struct weir_mux_conn *conn);

/**
 * weir_mux_conn_close() - end a connection, in both directions
 *
 * Returns at once. What has been sent arrives all the same, as long as the other end reads and
 * the mux stays open; what has not been received is dropped.
 * Context: any thread, with no other call on the connection under way.
 */
void weir_mux_conn_close(struct weir_mux_conn *conn);

#ifdef __cplusplus
}
#endif
#endif
