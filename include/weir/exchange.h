/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Exchanges: messages between two programs through pools of registered slots (HiPower).
 *
 * Each end has a pool of slots to send from, and a mirror of its peer's to receive in. A message is
 * written from a slot straight into its mirror. Who has what is told by two bitmaps, which each end
 * keeps in its own memory and the other reads: one read confirms many messages and frees many
 * slots, and takes no part of the peer's CPU. The immediate mode is the usual way instead, for
 * comparison: an immediate a message, and messages that give slots back.
 *
 * Messages arrive once and in order for as long as the connection lives. When it breaks, what was
 * found until then can still be taken, weir_exchange_info() says what the peer is known to have,
 * and nothing is repeated.
 *
 *	sender                                     receiver
 *	weir_exchange_put(x, data, length, ...)    n = weir_exchange_take(x, slots, max, ...)
 *	...                                        use slots[0] to slots[n - 1] where they are
 *	weir_exchange_flush(x, ...)                weir_exchange_release(x, slots, n)
 *
 * An exchange is driven by the calls on it, and by nothing else: no thread is started. What was put
 * is on its way when the call returns, but the peer may not find it until a later call here has
 * seen that it arrived. So whoever has put its last for now calls weir_exchange_flush(), or waits
 * in weir_exchange_take().
 *
 * Context of all: one thread at a time for an exchange, whichever it is, also to close it: nothing
 * ends a call that waits in another thread but its timeout and its peer. Other exchanges are
 * independent. A listener may be used by any number of threads. A call that waits stops waiting
 * after its timeout: 0 does not wait, WEIR_EXCHANGE_FOREVER has no end. Where slots are in a GPU's
 * memory, -EIO says that the driver failed to copy one, and the exchange has ended.
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

/* How one end learns of the other's messages and free slots. Both ends want the same. */
enum weir_exchange_mode {
	WEIR_EXCHANGE_BITMAP, /* by reading its bitmaps: many at a time, without its CPU */
	WEIR_EXCHANGE_IMM, /* by an immediate for each message, and messages that give slots back */
};

/* Where an end has its slots; each end as it likes. */
enum weir_exchange_memory {
	WEIR_EXCHANGE_HOST,
	WEIR_EXCHANGE_CUDA, /* in a GPU: by the device if it reaches that, or else copied by the
			     * driver */
};

/* Zero means the default everywhere. */
struct weir_exchange_options {
	const struct weir_key *key; /* NULL: none, on loopback only; kept until close */
	const char *device; /* only this verbs device; NULL: what the route says */
	enum weir_exchange_mode mode;
	unsigned int slots; /* to send from, 1 to WEIR_EXCHANGE_SLOTS_MAX, or 4096 in immediate
			     * mode; default as many as @pool_bytes has room for, 8 to 256 */
	size_t slot_bytes; /* of a message that one slot carries, up to 1 GiB; default 4096 */
	uint64_t receive_bytes_max; /* a peer whose pool needs more memory here is refused;
				     * default 1 GiB */
	bool busy; /* never sleep while waiting. Default: poll for as long as it pays, then sleep */
	unsigned int percent_min; /* bitmap: with fewer of its slots free than this, an end asks
				   * which have become free, 1 to 99; default 40 */
	uint64_t timeout_ns; /* of connecting, default 10 s */
	enum weir_exchange_memory memory;
	unsigned int gpu; /* of WEIR_EXCHANGE_CUDA: which, as the CUDA driver counts them */
	uint64_t pool_bytes; /* memory for all @exchanges, of pools and mirrors; default 64 MiB */
	unsigned int exchanges; /* that share it: who receives from many has a mirror of each one's
				 * pool, so each one's is to be smaller; default 1, of a group all
				 * but this member */
	bool unordered; /* this end takes what has come as it finds it: a message that is there does
			 * not wait for an earlier one that is not found yet. The peer's messages
			 * have one slot each then */
	bool (*goes_on)(void *arg); /* asked about ten times a second, by who waits in
				     * weir_exchange_connect(), weir_group_lead() or _join(): false
				     * ends the call, with -ECANCELED; default no */
	void *goes_on_arg;
};

/**
 * struct weir_exchange_slot - a slot, as it is acquired or taken
 * @data: its memory; a message's bytes go here, or are here. WEIR_EXCHANGE_CUDA: an address of
 *	the GPU; what is to be sent is there, all streams waited for, before it is committed
 * @length: taken: bytes that are there. Acquired: bytes that fit; set it to what is to be sent
 * @number: which slot it is; not to be changed
 * @last: whether the message ends with this slot; acquired: true, to be set to false for all but
 *	the last slot of a longer message
 */
struct weir_exchange_slot {
	void *data;
	size_t length;
	uint32_t number;
	bool last;
};

/**
 * weir_exchange_listen() - wait for peers at an address
 * @address: "addr", "addr:port", ":port"; NULL: 127.0.0.1; the port defaults to
 *	WEIR_PORT_DEFAULT, 0 is any
 * @options: for all that are accepted; NULL for defaults; copied
 *
 * Return: 0; -EINVAL; -ENODEV no device, or no GPU; -EADDRINUSE; -EPERM no key but not loopback.
 */
int weir_exchange_listen(const char *address, const struct weir_exchange_options *options,
			 struct weir_exchange_listener **listener, struct weir_error *error);

/* The address:port that it listens at, valid until it is closed. */
const char *weir_exchange_address(const struct weir_exchange_listener *listener);

/**
 * weir_exchange_accept() - take the next peer that proves the key
 * @x: receives an exchange with it; end it with weir_exchange_close()
 *
 * One that fails to prove the key is refused, and the next one waited for. All who come prove it at
 * once, in calls of this, 32 at a time; one that is mute is sent away after 5 s. Each peer goes to
 * one of those who call.
 *
 * Return: 0; -EAGAIN nobody (timeout 0); -ETIMEDOUT; -ECANCELED the listener was closed; -ENOMEM;
 * -EIO.
 */
int weir_exchange_accept(struct weir_exchange_listener *listener, uint64_t timeout_ns,
			 struct weir_exchange **x, struct weir_error *error);

/**
 * weir_exchange_unlisten() - stop listening
 * @listener: NULL is nothing
 *
 * Exchanges that were accepted stay. Calls of weir_exchange_accept() and weir_group_lead() that are
 * under way in other threads end with -ECANCELED, which this waits for: so not from within goes_on.
 * No other call may begin any more.
 */
void weir_exchange_unlisten(struct weir_exchange_listener *listener);

/**
 * weir_exchange_connect() - connect to a listener, prove the key, mutually, and agree on pools
 * @peer: "host", "host:port", "[v6]:port"
 * @options: NULL for defaults; copied
 *
 * Return: 0; -EINVAL malformed name or option;
 * -EHOSTUNREACH; -ECONNREFUSED nobody listens; -EAGAIN; -EKEYREJECTED; -EPROTO; -EPROTONOSUPPORT;
 * -EPROTO also if the peer wants the other mode; -EDQUOT an end takes no pool as large as the
 * other's; -ENODEV no device, or no GPU; -ETIMEDOUT; -ENOMEM.
 */
int weir_exchange_connect(const char *peer, const struct weir_exchange_options *options,
			  struct weir_exchange **x, struct weir_error *error);

/**
 * weir_exchange_put() - send a message, copied
 * @data: also of a GPU, if the slots are in one's memory
 * @length: bytes; any number of slots, also none: an empty message is one
 * @done: receives how many bytes were taken; may be NULL if the timeout is
 *	WEIR_EXCHANGE_FOREVER
 *
 * If not all of it was taken, the message goes on with the rest: put @data + @done next, and
 * nothing else before. A part that was taken is never lost while the connection lives.
 *
 * Return: 0 all of it is on its way; -EAGAIN no free slot (timeout 0); -ETIMEDOUT; -ECONNRESET the
 * connection is gone; -EINVAL after weir_exchange_finish(); -EMSGSIZE longer than a slot, and the
 * peer takes messages unordered.
 */
int weir_exchange_put(struct weir_exchange *x, const void *data, size_t length, uint64_t timeout_ns,
		      size_t *done);

/**
 * weir_exchange_acquire() - free slots to write messages in, without a copy
 * @slots: receives them
 * @max: at most so many, at least 1
 *
 * Each is owed a weir_exchange_commit(), which sends it, or a weir_exchange_abandon().
 * Of a pool larger than the device's queue no more are handed out than can be sent at once.
 *
 * Return: how many, at least 1; -EAGAIN none is free (timeout 0); -ETIMEDOUT; -ECONNRESET; -EINVAL.
 */
int weir_exchange_acquire(struct weir_exchange *x, struct weir_exchange_slot *slots,
			  unsigned int max, uint64_t timeout_ns);

/**
 * weir_exchange_commit() - send slots that were filled, in this order
 * @slots: acquired, with length and last set
 *
 * They must not be written to any more. Return: 0; -EMSGSIZE longer than the slot, or not the last
 * of its message though the peer takes messages unordered, -EINVAL a slot that was not acquired:
 * nothing was sent; -ECONNRESET.
 */
int weir_exchange_commit(struct weir_exchange *x, const struct weir_exchange_slot *slots,
			 unsigned int count);

/*
 * Gives slots back that were acquired and will not be sent. Return: 0; -EINVAL one of them is not
 * acquired: it and those after it were not given back.
 */
int weir_exchange_abandon(struct weir_exchange *x, const struct weir_exchange_slot *slots,
			  unsigned int count);

/**
 * weir_exchange_flush() - make sure that the peer can take all that was put
 *
 * Return: 0: all of it is in the peer's memory, and the peer finds it there; -EAGAIN not yet
 * (timeout 0); -ETIMEDOUT; -ECONNRESET.
 */
int weir_exchange_flush(struct weir_exchange *x, uint64_t timeout_ns);

/**
 * weir_exchange_finish() - say that nothing more will be put, and wait until all was taken
 *
 * If the peer has not taken all in time it can be called again. Both ends may finish at once. What
 * the peer has put is not taken here: who has messages left to take keeps the peer's call waiting.
 *
 * Return: 0: the peer has taken all that was put; -EAGAIN not yet (timeout 0); -ETIMEDOUT;
 * -ECONNRESET; -EINVAL a message was not put to its end.
 */
int weir_exchange_finish(struct weir_exchange *x, uint64_t timeout_ns);

/**
 * weir_exchange_take() - what has come, where it lies, in order, unless that is not wanted
 * @slots: receives them; valid, and theirs to write to as well, until released
 * @max: at most so many, at least 1
 *
 * A message longer than a slot comes slot by slot: @last tells its end.
 *
 * Return: how many; 0 the peer has finished and all was taken; -EAGAIN nothing is there (timeout
 * 0); -ETIMEDOUT; -ECONNRESET the connection is gone, and all that had come was taken; -EPROTO the
 * peer breaks the rules.
 */
int weir_exchange_take(struct weir_exchange *x, struct weir_exchange_slot *slots, unsigned int max,
		       uint64_t timeout_ns);

/**
 * weir_exchange_release() - give slots that were taken back to the sender
 *
 * In any order, any number at a time: the sender learns of many at once.
 *
 * Return: 0; -EINVAL one of them is not taken: it and those after it were not given back;
 * -ECONNRESET.
 */
int weir_exchange_release(struct weir_exchange *x, const struct weir_exchange_slot *slots,
			  unsigned int count);

/**
 * weir_exchange_get() - the next message, copied
 * @data: as of weir_exchange_put()
 * @max: bytes of @data
 * @length: receives its length
 *
 * Not to be mixed with weir_exchange_take() within one message.
 *
 * Return: 0; -EAGAIN or -ETIMEDOUT it is not all there: call again with the same buffer;
 * -EMSGSIZE it is longer than @max: *length says how long, and it is dropped; -ECONNRESET;
 * -ENOENT the peer has finished; -EPROTO.
 */
int weir_exchange_get(struct weir_exchange *x, void *data, size_t max, size_t *length,
		      uint64_t timeout_ns);

/**
 * weir_exchange_process() - do what is to be done, without waiting
 *
 * For event loops: while it returns 1 there is something to take, or room where there was none, or
 * a call that was refused with -EAGAIN is worth another try. When it has returned 0,
 * weir_exchange_fd() becomes readable once there may be.
 *
 * It asks nothing of a peer that is silent, so neither this nor the descriptor tells of one that
 * has vanished without a word, as when its host loses power. Who has to know calls, after each
 * second or so in which the descriptor was silent, weir_exchange_take() or another call that waits,
 * with a timeout of some milliseconds: that asks. Once the device has given up,
 * weir_exchange_process() says -ECONNRESET.
 *
 * Return: 1; 0; -ECONNRESET and -EPROTO, as weir_exchange_take(), when there is nothing left to
 * take.
 */
int weir_exchange_process(struct weir_exchange *x);

/* For poll/epoll; the exchange's. */
int weir_exchange_fd(const struct weir_exchange *x);

/* All since the beginning, but for the first few. */
struct weir_exchange_info {
	char device[64];
	char peer[64]; /* address:port */
	enum weir_exchange_mode mode;
	enum weir_exchange_memory memory;
	bool staged; /* the device does not reach the GPU: slots are copied through host memory */
	unsigned int slots, peer_slots; /* to send from, to receive in */
	size_t slot_bytes, peer_slot_bytes;
	uint64_t put; /* slots committed */
	uint64_t arrived; /* of them, in the peer's memory, where it finds them */
	uint64_t released; /* of them, taken by the peer and given back, as far as is known */
	uint64_t taken; /* slots that were taken here */
	uint64_t bytes_put, bytes_taken;
	uint64_t writes; /* work requests that carried slots */
	uint64_t looks; /* reads of the peer's bitmaps */
	uint64_t tells; /* bitmap: of @writes, those with an immediate, for a peer that waits: it
			 * tells of all slots that the peer did not know of */
	uint64_t wakes; /* writes of nothing with an immediate, and requests for those */
	uint64_t gives; /* immediate mode: messages that gave slots back */
	uint64_t recvs; /* receive work requests posted */
	uint64_t doorbells, completions, events, sleeps;
};

void weir_exchange_info(const struct weir_exchange *x, struct weir_exchange_info *info);

/**
 * weir_exchange_close() - end the exchange
 *
 * What the peer has not found yet is lost to it, unless weir_exchange_finish() has said that it has
 * taken all. Waits for nothing but, five seconds at most, for a peer that has finished to hear that
 * all of it was taken. Slots that are taken or acquired go with it. NULL is nothing.
 */
void weir_exchange_close(struct weir_exchange *x);

#ifdef __cplusplus
}
#endif
#endif
