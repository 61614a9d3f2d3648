/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Exchanges: messages between two programs through pools of registered slots (HiPower).
 *
 * Each end has a pool of slots to send from, and a mirror of the peer's pool to receive in. The
 * sender writes a message from a slot straight into the slot's mirror. Two bitmaps record the owner
 * of each slot. Each end keeps a bitmap in its own memory for the peer to read. A single RDMA read
 * confirms many messages and frees many slots without the peer's CPU. The immediate mode is the
 * conventional scheme, for comparison: an immediate per message, and messages that return slots.
 *
 * Messages arrive once and in order while the connection lives. After it breaks, messages already
 * found can still be taken, weir_exchange_info() reports what the peer is known to have, and
 * nothing is sent again.
 *
 *	sender                                     receiver
 *	weir_exchange_put(x, data, length, ...)    n = weir_exchange_take(x, slots, max, ...)
 *	...                                        use slots[0] to slots[n - 1] in place
 *	weir_exchange_flush(x, ...)                weir_exchange_release(x, slots, n)
 *
 * An exchange has no thread: only calls drive it. A put message is in flight when the call returns,
 * but the peer may not find it until a later call at the sender has seen its completion. After its
 * last message, a sender therefore calls weir_exchange_flush(), or waits in weir_exchange_take().
 *
 * Context of all calls: one thread at a time per exchange, any thread, also for the close. Only the
 * timeout and the peer end a waiting call. Exchanges are independent of each other. Any number of
 * threads may use a listener. A timeout of 0 does not wait; WEIR_EXCHANGE_FOREVER has no end. With
 * slots in GPU memory, -EIO means that the driver failed to copy a slot and that the exchange has
 * ended.
 */
#ifndef WEIR_EXCHANGE_H
#define WEIR_EXCHANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <weir/error.h>
#include <weir/key.h>
#include <weir/session.h>

#ifdef __cplusplus
extern "C" {
#endif

struct weir_exchange;
struct weir_exchange_listener;

#define WEIR_EXCHANGE_SLOTS_MAX 65536
#define WEIR_EXCHANGE_FOREVER UINT64_MAX

/* How an end learns of new messages and free slots. Both ends must choose the same mode. */
enum weir_exchange_mode {
	/*
	 * reads the peer's bitmaps: many slots per read, without the peer's CPU. Where messages
	 * come further apart than reads take, the sender announces each by an immediate
	 */
	WEIR_EXCHANGE_BITMAP,
	WEIR_EXCHANGE_IMM, /* an immediate per message, and messages that return slots */
};

/* Where an end keeps its slots. Each end chooses for itself. */
enum weir_exchange_memory {
	WEIR_EXCHANGE_HOST,
	/* in a GPU: accessed by the device if it can, otherwise copied by the driver */
	WEIR_EXCHANGE_CUDA,
};

/* How to open an exchange. Zero means the default in every field but the size. */
struct weir_exchange_options {
	size_t size; /* sizeof(struct weir_exchange_options) */
	const struct weir_key *key; /* NULL: none, on loopback only; kept until close */
	const char *device; /* use only this verbs device; NULL: follow the route */
	enum weir_exchange_mode mode;
	/*
	 * Slots to send from, 1 to WEIR_EXCHANGE_SLOTS_MAX (immediate mode: to 4096); default: as
	 * many as fit in @pool_bytes, 8 to 256.
	 */
	unsigned int slots;
	size_t slot_bytes; /* message bytes per slot, up to 1 GiB; default 4096 */
	/* Refuse a peer whose pool needs more memory here than this; default 1 GiB. */
	uint64_t receive_bytes_max;
	bool busy; /* never sleep while waiting; default: poll while polling pays, then sleep */
	/*
	 * Bitmap mode: free slots, in percent, below which an end reads the peer's bitmap for more,
	 * 1 to 99; default 40.
	 */
	unsigned int percent_min;
	uint64_t timeout_ns; /* for connecting; default 10 s */
	enum weir_exchange_memory memory;
	unsigned int gpu; /* with WEIR_EXCHANGE_CUDA: the GPU's number in the CUDA driver */
	uint64_t pool_bytes; /* memory for pools and mirrors of all @exchanges; default 64 MiB */
	/*
	 * Number of exchanges that share @pool_bytes. A receiver from many peers keeps a mirror for
	 * each, so each pool must be smaller. Default 1; in a group, the number of other members.
	 */
	unsigned int exchanges;
	/*
	 * This end takes messages in the order in which it finds them, without waiting for earlier
	 * messages. The peer's messages are then limited to one slot each.
	 */
	bool unordered;
	/*
	 * Called about ten times a second while weir_exchange_connect(), weir_group_lead() or
	 * weir_group_join() waits; false ends the wait with -ECANCELED. May be NULL.
	 */
	bool (*goes_on)(void *arg);
	void *goes_on_arg;
	uint64_t encryption; /* enum weir_encryption, for a peer on another host */
	/* by which connecting ends know this one; kept until close; NULL: another one each time */
	const struct weir_identity *identity;
	/*
	 * 32 bytes, kept until close: the public key of the only listening end to trust when this
	 * one connects; see weir_identity_public(). NULL: those that the file of @key names, or
	 * else any that knows the key. In a group, members connect to several others: the file
	 * names them all.
	 */
	const unsigned char *peer_identity;
};

/**
 * struct weir_exchange_slot - a slot, acquired or taken
 * @data: the slot's memory. With WEIR_EXCHANGE_CUDA a GPU address: all streams that write the
 *	message must have finished before the commit
 * @length: of a taken slot: bytes received. Of an acquired slot: capacity; the caller sets the
 *	bytes to send
 * @number: the slot's number; read-only
 * @last: whether the message ends with this slot. Of an acquired slot: true; the caller sets false
 *	for all but the last slot of a longer message
 */
struct weir_exchange_slot {
	void *data;
	size_t length;
	uint32_t number;
	bool last;
};

/**
 * weir_exchange_listen() - listen for peers at an address
 * @address: "addr", "addr:port" or ":port"; NULL: 127.0.0.1; the port defaults to
 *	WEIR_PORT_DEFAULT, 0 means any
 * @options: for all accepted exchanges; NULL for defaults; copied
 * @listener: receives the listener
 * @error: may be NULL
 *
 * The caller owes a weir_exchange_unlisten().
 *
 * Return: 0, or
 *	-EINVAL      a malformed address or option;
 *	-E2BIG       an option that this library does not know;
 *	-ENODEV      no verbs device, or no GPU;
 *	-EADDRINUSE  another process listens at the address;
 *	-EPERM       without a key, only loopback addresses are allowed.
 */
int weir_exchange_listen(const char *address, const struct weir_exchange_options *options,
			 struct weir_exchange_listener **listener, struct weir_error *error);

/* Return: the listener's address:port, valid until weir_exchange_unlisten(). */
const char *weir_exchange_address(const struct weir_exchange_listener *listener);

/**
 * weir_exchange_accept() - take the next peer that proves the key
 * @listener: the listener
 * @timeout_ns: how long to wait
 * @x: receives the exchange
 * @error: may be NULL
 *
 * A peer that fails the proof is refused, and the call waits for the next. Up to 32 peers prove the
 * key concurrently, inside calls of this function, and 16 more that have answered at their address.
 * A silent peer is disconnected after 5 s, or after one if others want its place. With
 * several callers, each peer goes to one caller. The caller owes a weir_exchange_close().
 *
 * Return: 0, or
 *	-EAGAIN     no peer (timeout 0);
 *	-ETIMEDOUT  no peer in time;
 *	-ECANCELED  the listener was closed;
 *	-ENOMEM, -EIO.
 */
int weir_exchange_accept(struct weir_exchange_listener *listener, uint64_t timeout_ns,
			 struct weir_exchange **x, struct weir_error *error);

/**
 * weir_exchange_unlisten() - stop listening
 * @listener: NULL is allowed
 *
 * Accepted exchanges stay open. Calls of weir_exchange_accept() and weir_group_lead() in other
 * threads end with -ECANCELED, and this call waits for them. It must therefore not run inside
 * goes_on. No other call may start any more.
 */
void weir_exchange_unlisten(struct weir_exchange_listener *listener);

/**
 * weir_exchange_connect() - connect to a listener, prove the key mutually, and agree on pools
 * @peer: "host", "host:port" or "[v6]:port"
 * @options: NULL for defaults; copied
 * @x: receives the exchange
 * @error: may be NULL
 *
 * The caller owes a weir_exchange_close().
 *
 * Return: 0, or
 *	-EINVAL           a malformed name or option;
 *	-E2BIG            an option that this library does not know;
 *	-EHOSTUNREACH     no route to the peer;
 *	-ECONNREFUSED     no process listens there;
 *	-EAGAIN           the listener is busy: try again;
 *	-EKEYREJECTED     either side failed to prove the key, or the listener has another identity;
 *	-EPROTO           an invalid reply, or the peer uses the other mode;
 *	-EPROTONOSUPPORT  the peer speaks another version;
 *	-EDQUOT           an end refuses a pool as large as the other's;
 *	-ENODEV           no verbs device, or no GPU;
 *	-ETIMEDOUT, -ENOMEM.
 */
int weir_exchange_connect(const char *peer, const struct weir_exchange_options *options,
			  struct weir_exchange **x, struct weir_error *error);

/**
 * weir_exchange_put() - send a message, copied
 * @x: the exchange
 * @data: the message; may be in a GPU if the slots are
 * @length: bytes; any number of slots; 0 sends an empty message
 * @timeout_ns: how long to wait for free slots
 * @done: receives how many bytes were taken; may be NULL with WEIR_EXCHANGE_FOREVER
 *
 * If only a part was taken, the caller's next call must put the rest, @data + @done. A part that
 * was taken is never lost while the connection lives.
 *
 * Return: 0 (the whole message is in flight), or
 *	-EAGAIN      no free slot (timeout 0);
 *	-ETIMEDOUT   no free slot in time;
 *	-ENOTCONN    the peer has closed;
 *	-ECONNRESET  the connection is lost, or the peer has died;
 *	-EINVAL      after weir_exchange_finish();
 *	-EMSGSIZE    longer than a slot, and the peer takes messages unordered.
 */
int weir_exchange_put(struct weir_exchange *x, const void *data, size_t length, uint64_t timeout_ns,
		      size_t *done);

/**
 * weir_exchange_acquire() - get free slots in which to write messages without a copy
 * @x: the exchange
 * @slots: receives the slots
 * @max: most slots to return, at least 1
 * @timeout_ns: how long to wait for a free slot
 *
 * For each slot the caller owes a weir_exchange_commit(), which sends it, or a
 * weir_exchange_abandon(). The call never returns more slots than fit in the device's send queue.
 *
 * Return: number of slots, at least 1, or
 *	-EAGAIN  no free slot (timeout 0);
 *	-ETIMEDOUT, -ENOTCONN, -ECONNRESET, -EINVAL.
 */
int weir_exchange_acquire(struct weir_exchange *x, struct weir_exchange_slot *slots,
			  unsigned int max, uint64_t timeout_ns);

/**
 * weir_exchange_commit() - send filled slots, in the order given
 * @x: the exchange
 * @slots: acquired, with length and last set; read-only from now on
 * @count: number of slots
 *
 * Return: 0, or
 *	-EMSGSIZE    longer than the slot, or a message of several slots though the peer takes
 *	             messages unordered: nothing was sent;
 *	-EINVAL      a slot was not acquired: nothing was sent;
 *	-ENOTCONN    the peer has closed;
 *	-ECONNRESET  the connection is lost, or the peer has died.
 */
int weir_exchange_commit(struct weir_exchange *x, const struct weir_exchange_slot *slots,
			 unsigned int count);

/*
 * Returns acquired slots that the caller will not send.
 * Return: 0; -EINVAL a slot was not acquired: this slot and the slots after it were not returned.
 */
int weir_exchange_abandon(struct weir_exchange *x, const struct weir_exchange_slot *slots,
			  unsigned int count);

/**
 * weir_exchange_flush() - wait until the peer can take everything that was put
 * @x: the exchange
 * @timeout_ns: how long to wait
 *
 * Return: 0 (everything is in the peer's memory, where the peer finds it), or
 *	-EAGAIN  not yet (timeout 0);
 *	-ETIMEDOUT, -ENOTCONN, -ECONNRESET.
 */
int weir_exchange_flush(struct weir_exchange *x, uint64_t timeout_ns);

/**
 * weir_exchange_finish() - put nothing more, and wait until the peer has taken everything
 * @x: the exchange
 * @timeout_ns: how long to wait; after a timeout the caller may call again
 *
 * Both ends may finish at the same time. The call does not take the peer's messages: while this end
 * leaves messages untaken, the peer's weir_exchange_finish() keeps waiting.
 *
 * Return: 0 (the peer has taken everything), or
 *	-EAGAIN  not yet (timeout 0);
 *	-EINVAL  a message was put only in part;
 *	-ETIMEDOUT, -ENOTCONN, -ECONNRESET.
 */
int weir_exchange_finish(struct weir_exchange *x, uint64_t timeout_ns);

/**
 * weir_exchange_take() - receive messages in place, in order (unless the option unordered is set)
 * @x: the exchange
 * @slots: receives the slots; the caller may read and write their memory until the release
 * @max: most slots to return, at least 1
 * @timeout_ns: how long to wait for a slot
 *
 * A message longer than a slot arrives slot by slot; @last marks its end. The caller owes a
 * weir_exchange_release() for each slot.
 *
 * Return: number of slots, 0 (the peer has finished and everything is taken), or
 *	-EAGAIN      nothing has arrived (timeout 0);
 *	-ETIMEDOUT   nothing arrived in time;
 *	-ENOTCONN    the peer has closed without finishing, and everything that had arrived is
 *	  taken;
 *	-ECONNRESET  the connection is lost, and everything that had arrived is taken;
 *	-EPROTO      the peer violates the protocol.
 */
int weir_exchange_take(struct weir_exchange *x, struct weir_exchange_slot *slots, unsigned int max,
		       uint64_t timeout_ns);

/**
 * weir_exchange_release() - return taken slots to the sender
 * @x: the exchange
 * @slots: taken slots, in any order
 * @count: number of slots
 *
 * Return: 0, or
 *	-EINVAL  a slot was not taken: this slot and the slots after it were not returned;
 *	-ECONNRESET.
 */
int weir_exchange_release(struct weir_exchange *x, const struct weir_exchange_slot *slots,
			  unsigned int count);

/**
 * weir_exchange_get() - receive the next message, copied
 * @x: the exchange
 * @data: as for weir_exchange_put()
 * @max: bytes that fit at @data
 * @length: receives the message's length
 * @timeout_ns: how long to wait
 *
 * Within a message the caller must not mix this call with weir_exchange_take().
 *
 * Return: 0, or
 *	-EAGAIN, -ETIMEDOUT  the message is incomplete: call again with the same buffer;
 *	-EMSGSIZE            longer than @max: *@length says how long; the message is dropped;
 *	-ENOTCONN            the peer has closed without finishing;
 *	-ECONNRESET          the connection is lost, or the peer has died;
 *	-ENOENT              the peer has finished;
 *	-EPROTO              the peer violates the protocol.
 */
int weir_exchange_get(struct weir_exchange *x, void *data, size_t max, size_t *length,
		      uint64_t timeout_ns);

/**
 * weir_exchange_process() - make progress without waiting
 * @x: the exchange
 *
 * For event loops. A return of 1 means that there are messages to take, that slots have become
 * free, or that a call refused with -EAGAIN should be tried again. After a return of 0,
 * weir_exchange_fd() becomes readable when the next call may return 1.
 *
 * This call and the descriptor never probe a silent peer, so they do not detect a host that
 * vanishes, such as by a power failure. A caller that must detect this calls a waiting function,
 * such as weir_exchange_take() with a timeout of some milliseconds, after each second or so of
 * silence: the wait probes the peer. Once the device has given up, weir_exchange_process() returns
 * -ECONNRESET.
 *
 * Return: 1; 0; or, when nothing is left to take, -ECONNRESET or -EPROTO as for
 * weir_exchange_take().
 */
int weir_exchange_process(struct weir_exchange *x);

/* Return: a descriptor for poll() and epoll, owned by the exchange. */
int weir_exchange_fd(const struct weir_exchange *x);

/* Totals since the beginning, except for the first few counts. */
struct weir_exchange_info {
	size_t size; /* bytes that the library has written */
	char device[64];
	char peer[64]; /* address:port */
	enum weir_exchange_mode mode;
	enum weir_exchange_memory memory;
	bool staged; /* the device cannot access the GPU: slots are copied through host memory */
	unsigned int slots, peer_slots; /* to send from, to receive in */
	size_t slot_bytes, peer_slot_bytes;
	uint64_t put; /* slots committed */
	/* those of @put that are in the peer's memory, where the peer finds them */
	uint64_t arrived;
	uint64_t released; /* those of @put that the peer is known to have taken and returned */
	uint64_t taken; /* slots taken here */
	uint64_t bytes_put, bytes_taken;
	uint64_t writes; /* work requests that carried slots */
	uint64_t bitmap_reads; /* RDMA reads of the peer's bitmaps */
	/*
	 * Bitmap mode: those of @writes with an immediate, for a waiting peer. The immediate
	 * announces all slots that the peer did not know of.
	 */
	uint64_t imm_writes;
	uint64_t wakeups; /* empty writes with an immediate, and requests for such writes */
	uint64_t credits; /* immediate mode: messages that returned slots */
	uint64_t recvs; /* receive work requests posted */
	uint64_t doorbells, completions, events, sleeps;
};

/* Reads an exchange's counters. @size: sizeof(*@info). Return: 0; -EINVAL @size is too small. */
int weir_exchange_info(const struct weir_exchange *x, struct weir_exchange_info *info, size_t size);

/**
 * weir_exchange_close() - end the exchange
 * @x: NULL is allowed
 *
 * Messages that the peer has not found yet are lost, unless weir_exchange_finish() has returned 0.
 * The call waits only for a peer in weir_exchange_finish(), five seconds at most, so that the peer
 * learns that everything was taken. All slots, taken or acquired, become invalid.
 */
void weir_exchange_close(struct weir_exchange *x);

#ifdef __cplusplus
}
#endif
#endif
