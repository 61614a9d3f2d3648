/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * One end of an exchange, from the inside. What is where:
 *
 *	meet, connect, listen, greet
 *				until both ends have proven the key and told where their memory is
 *	memory			what is registered, in the host and in a GPU
 *	queue, complete		work requests; completions, and what they mean
 *	look			when to look at the peer's bitmaps, to ask it for a sign, and to give one
 *	wait			when to sleep, and for what
 *	put, take		what the user calls
 */
#ifndef WEIR_LIB_EXCHANGE_H
#define WEIR_LIB_EXCHANGE_H

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <weir/exchange.h>
#include "core/look.h"
#include "core/poll.h"
#include "lib/address.h"
#include "lib/clock.h"
#include "lib/cuda.h"
#include "lib/handshake.h"
#include "wire/exchange.h"

#define WEIR_EXCHANGE_CHAIN 32u /* work requests with one doorbell, at most, but for a look */
#define WEIR_EXCHANGE_IMM_SLOTS_MAX 4096u
#define WEIR_EXCHANGE_GIVES 4u /* messages under way that give slots back */
#define WEIR_EXCHANGE_RECV_BYTES 256u
#define WEIR_EXCHANGE_RECVS (WIRE_TELLS_MAX + 2 * WEIR_EXCHANGE_CHAIN) /* bitmap */
#define WEIR_EXCHANGE_REST_MS_MAX 1000 /* asleep, the peer is asked so often whether it is there */
#define WEIR_EXCHANGE_LOOKS 4u /* at most, of who waits, before it asks to be woken */

/* What somebody asleep waits for, in the low bits of what he writes to the peer's bell. */
#define WEIR_EXCHANGE_NEWS WIRE_NEWS
#define WEIR_EXCHANGE_ROOM WIRE_ROOM
#define WEIR_EXCHANGE_ALL (WEIR_EXCHANGE_NEWS | WEIR_EXCHANGE_ROOM)

/* A slot of the mirror that is full: what its header said when it came, read once. */
struct weir_exchange_arrival {
	uint32_t length;
	uint16_t flags;
	uint16_t before;
	bool is_taken; /* the user has it */
};

/**
 * struct weir_exchange_pool - memory of slots
 * @heads, @head_stride: a wire_slot of each, in host memory
 * @data, @stride: what they carry, where the device reads and writes it
 * @user: where the user has it: elsewhere only if that is a GPU's memory that the device cannot reach
 * @gpu: the GPU's memory, if it is wanted
 * @gpu_mr: its registration, if the device can reach it
 */
struct weir_exchange_pool {
	char *heads;
	uint64_t head_stride;
	char *data;
	uint64_t stride;
	char *user;
	struct weir_cuda_memory gpu;
	struct ibv_mr *gpu_mr;
};

/**
 * struct weir_exchange - one end
 * @greeting: until both ends know each other
 * @cuda: the GPU that has the slots; NULL: they are in host memory
 * @pool: the own one
 * @mirror: of the peer's
 * @bell: behind the mirror: the peer asks here to be woken; @answered is the last that was
 * @bits: of the pool, then of the mirror
 * @fresh: the peer's, as the last look saw them: of the mirror's pool, then of the pool's mirror
 * @ring: what is written to the peer's bell
 * @recvs: buffers of messages that come, @nr_recvs
 * @gives: buffers of messages that give slots back; @gives_free is a mask
 * @peer: what the peer offered
 *
 * @order: of the slots that have come: by their sequence modulo the peer's slots, number + 1 or 0;
 *	unordered: by how many had come before
 * @next: sequence of the slot that is to be taken next; @found: unordered: how many have come
 * @closing: unordered: number + 1 of the slot that says that there is no more, until all before it,
 *	@closing_sequence of them, have come
 * @nr_acquired: slots acquired, and neither committed nor abandoned; @abandoned: so far
 * @nr_taken: slots the user has; @nr_released: since the peer was last woken for room
 *
 * @look: bitmap mode: when to look, to ring and to tell
 * @is_armed: the completion queue will raise an event
 * @rings: so far; @told: bitmap mode: how often the peer was told so far
 * @put_ns: when the last slots were put
 * @look_end: slots committed before the look under way
 * @is_to_ring: the next look is to ring, for all
 * @is_probing: immediate mode: a write of nothing is under way, to see whether the peer is there
 * @looks: that a wait begins with before it rings, as far as they have been of use lately
 * @acked, @signalled: slots whose writes are known to be done; of them all, those before the last that
 *	will say so; @marked: those before the last write of nothing that will
 * @was_refused: a call has found less than it wanted, and weir_exchange_process() has not said since
 *	that it is to be tried again; @progress when the first one did
 * @nr_spare: receives that are to be posted again: their buffers are in @spare
 * @nr_back: immediate mode: slots to be given back, in @back
 *
 * @status: 0, or why it has ended
 * @is_open_message: the last slot committed did not end its message
 * @end: sequence of the slot that says there is no more, @end_slot which it is; valid if @is_ending
 * @is_heard: the peer has taken that slot, too
 * @is_finished: the peer has said so; @is_telling: that this was heard is under way to it
 * @get_length: bytes of the message that weir_exchange_get() has so far
 */
struct weir_exchange {
	struct weir_exchange_options options;
	struct weir_exchange_info info;

	struct rdma_event_channel *cm;
	struct rdma_cm_id *id;
	struct ibv_pd *pd;
	struct ibv_comp_channel *events;
	struct ibv_cq *cq;
	struct ibv_mr *pool_mr, *mirror_mr, *bits_mr;
	uint32_t inline_max;
	uint32_t send_max; /* slots whose writes may be under way, or that may be acquired, in all */
	int fd;
	struct weir_exchange_greeting *greeting;

	struct weir_cuda *cuda;
	char *memory;
	size_t memory_bytes;
	struct weir_exchange_pool pool, mirror;
	uint64_t *bell, answered;
	uint64_t *bits, *fresh, *ring;
	char *recvs;
	uint32_t nr_recvs;
	struct wire_gives *gives;
	uint32_t gives_free;
	struct wire_offer peer;

	void *books;
	struct weir_confirm_out out;
	struct weir_confirm_in in;
	struct weir_exchange_arrival *arrivals;
	uint32_t *order;
	uint64_t next, found;
	uint32_t closing;
	uint64_t closing_sequence;
	uint32_t nr_acquired, nr_taken, nr_released;
	uint64_t abandoned;

	struct weir_look look;
	bool is_armed, is_to_ring, is_probing;
	uint64_t rings;
	uint32_t told;
	uint64_t put_ns;
	uint64_t look_end;
	unsigned int looks;
	uint64_t checked_ns; /* when it was last seen what the connection manager says */
	uint64_t acked, signalled, marked;
	bool was_refused;
	uint64_t progress;
	struct weir_gaps gaps, room_gaps;
	uint32_t nr_spare, *spare;
	uint32_t nr_back, *back;

	int status;
	bool is_open_message, is_ending, is_heard, is_finished, is_telling;
	uint32_t end_slot;
	size_t get_length;
};

static inline bool weir_exchange_is_imm(const struct weir_exchange *x)
{
	return x->options.mode == WEIR_EXCHANGE_IMM;
}

/* Slots committed whose arrival is not known yet. */
static inline uint64_t weir_exchange_unconfirmed(const struct weir_exchange *x)
{
	return x->out.committed - x->acked;
}

/* The peer has put its last slot, and has been told that it was taken. */
static inline bool weir_exchange_is_over(const struct weir_exchange *x)
{
	return x->is_finished && !x->nr_back;
}

/* Grows with all that may let a call do more than it could, but for what there is to take. */
static inline uint64_t weir_exchange_progress(const struct weir_exchange *x)
{
	return x->out.freed + x->abandoned + x->out.committed - weir_exchange_unconfirmed(x) +
	       weir_exchange_is_over(x);
}

/* A call has found less than it wanted. */
static inline void weir_exchange_refused(struct weir_exchange *x)
{
	if (x->was_refused)
		return;
	x->was_refused = true;
	x->progress = weir_exchange_progress(x);
}

static inline struct wire_slot *weir_exchange_head(const struct weir_exchange_pool *pool, uint32_t slot)
{
	return (void *)(pool->heads + slot * pool->head_stride);
}

/* At either end. */
static inline bool weir_exchange_is_unordered(const struct weir_exchange *x)
{
	return x->options.unordered || x->peer.is_unordered;
}

/* One write has a slot's header and its data: they lie together at the peer. */
static inline bool weir_exchange_is_joined(const struct weir_exchange *x)
{
	return x->peer.heads.rkey == x->peer.mirror.rkey && x->peer.head_stride == x->pool.stride &&
	       x->peer.heads.address + sizeof(struct wire_slot) == x->peer.mirror.address;
}

/* The user's slots are a GPU's memory that the device cannot reach: each is copied, to and fro. */
static inline bool weir_exchange_is_staged(const struct weir_exchange *x)
{
	return x->cuda && !x->pool.gpu_mr;
}

/* The listening end: what it waits for. */
enum weir_exchange_stage {
	WEIR_EXCHANGE_PROVES, /* the proof of the key */
	WEIR_EXCHANGE_OFFERS, /* the peer's pool */
	WEIR_EXCHANGE_PLACES, /* where the own one is mirrored */
	WEIR_EXCHANGE_MET, /* nothing more */
	WEIR_EXCHANGE_LEAVES, /* that the peer has heard that it is refused */
};

/**
 * struct weir_exchange_greeting - what is said before
 * @heard: receives that were used; @said, @sent: messages posted, and those of them that have gone
 * @left: the peer has ended the connection
 * @deadline_ns: of all of it
 * @stage, @status: of the listening end; and what it refuses with
 */
struct weir_exchange_greeting {
	struct ibv_mr *mr;
	unsigned int heard, said, sent;
	bool left;
	uint64_t deadline_ns;
	enum weir_exchange_stage stage;
	int status;
	struct weir_handshake handshake;
	char in[WIRE_HANDSHAKE_RECVS + WIRE_OFFERS_IN][WIRE_HANDSHAKE_MAX];
	char out[WIRE_HANDSHAKE_MAX];
};

/* meet.c: what both ends do until they know each other. */

/* Checks the options, and fills in the defaults. Return: 0; -EINVAL. */
int weir_exchange_options_fill(struct weir_exchange_options *filled,
			       const struct weir_exchange_options *given, struct weir_error *error);

/* One without a connection. Return: 0; -ENOMEM. End it by weir_exchange_close(). */
int weir_exchange_new(const struct weir_exchange_options *options, struct weir_exchange **x,
		      struct weir_error *error);

/* Makes all but the QP on @x->id's device, and says what that is to be. Return: 0; -ENOMEM. */
int weir_exchange_prepare(struct weir_exchange *x, struct ibv_qp_init_attr *attr,
			  struct weir_error *error);

/* Posts receives for what the peer will say, @count messages in all. */
int weir_exchange_expect(struct weir_exchange *x, unsigned int count, struct weir_error *error);

/* Begins the proof of the key over the QP, which is connected. */
int weir_exchange_setup(struct weir_exchange *x, struct weir_handshake_setup *setup,
			struct weir_error *error);

/* Whether to wait on for the peer; asked so often as it likes. Return: 0; -ECANCELED. */
int weir_exchange_ask_whether(const struct weir_exchange_options *options, struct weir_error *error);

/* Sends greeting->out. */
int weir_exchange_say(struct weir_exchange *x, size_t length, struct weir_error *error);

/* A message, if there is one. Return: 0; -EAGAIN; and as weir_exchange_hear(). */
int weir_exchange_listen_for(struct weir_exchange *x, const void **message, size_t *length,
			     struct weir_error *error);

/* Waits for a message. Return: 0; -ETIMEDOUT; -EPROTO the peer has ended the connection. */
int weir_exchange_hear(struct weir_exchange *x, const void **message, size_t *length,
		       struct weir_error *error);

/* Sends the own offer: the pool, and, if the peer's is known, where that is mirrored. */
int weir_exchange_offer(struct weir_exchange *x, struct weir_error *error);

/* Takes a message for the peer's. Return: 0; -EPROTO; -EDQUOT; what the peer refuses with. */
int weir_exchange_weigh(struct weir_exchange *x, const void *message, size_t length,
			struct weir_error *error);

/* Waits for the peer's. Return: as weir_exchange_weigh(). */
int weir_exchange_consider(struct weir_exchange *x, struct weir_error *error);

/* Posts the receives that follow those of the greeting. */
int weir_exchange_begin(struct weir_exchange *x, struct weir_error *error);

/* greet.c, listen.c: the listening end */

const struct weir_exchange_options *
weir_exchange_listener_options(const struct weir_exchange_listener *listener);

/* Who is accepted from now on shares the memory among @exchanges, unless the user said how many do. */
void weir_exchange_listener_share(struct weir_exchange_listener *listener, unsigned int exchanges);

/* Lets in who asked with @param on @x->id, to prove the key. Return: 0; why not. */
int weir_exchange_greet(struct weir_exchange *x, const struct rdma_conn_param *param,
			struct weir_error *error);

/* What can be done at once. Return: 0 both have met; -EAGAIN not yet; why they do not. */
int weir_exchange_greet_on(struct weir_exchange *x, struct weir_error *error);

/* memory.c */

/* Takes and registers all memory; @x->peer says how large its pool is. Return: 0; -ENOMEM. */
int weir_exchange_memory_make(struct weir_exchange *x, struct weir_error *error);
void weir_exchange_memory_free(struct weir_exchange *x);

/* Copies what the user has, or is to have. Return: 0; or @x->status, if the GPU cannot. */
int weir_exchange_copy(struct weir_exchange *x, void *to, const void *from, size_t bytes);

/* Slots that were filled are where the device reads them. Return: as weir_exchange_copy(). */
int weir_exchange_stage(struct weir_exchange *x, const struct weir_exchange_slot *slots,
			unsigned int count);

/* Slots that were taken are where the user reads them. Return: as weir_exchange_copy(). */
int weir_exchange_unstage(struct weir_exchange *x, const struct weir_exchange_slot *slots,
			  unsigned int count);

/* queue.c: all return 0 or @x->status. */

/* What a completion is of: the high byte of its wr_id; below it what the tag needs. */
enum weir_exchange_tag {
	WEIR_EXCHANGE_OF_WRITE, /* of slots: how many had been committed then */
	WEIR_EXCHANGE_OF_LOOK,
	WEIR_EXCHANGE_OF_WAKE,
	WEIR_EXCHANGE_OF_PROBE,
	WEIR_EXCHANGE_OF_HEARD,
	WEIR_EXCHANGE_OF_GIVES, /* its buffer */
	WEIR_EXCHANGE_OF_RECV, /* its buffer */
};

static inline uint64_t weir_exchange_id(enum weir_exchange_tag tag, uint64_t value)
{
	return (uint64_t)tag << 56 | value;
}

/* Posts the receives that are to be posted again. */
int weir_exchange_queue_recvs(struct weir_exchange *x);

/* Posts the writes of slots, headers filled in, and a look behind them if one is due. */
int weir_exchange_queue_slots(struct weir_exchange *x, const struct weir_exchange_slot *slots,
			      unsigned int count);

/* Reads the peer's bitmaps; before that, rings its bell if @ring is not 0. */
int weir_exchange_queue_look(struct weir_exchange *x, uint64_t ring);

/* Tells of all slots that are not shown, by a write of nothing. */
int weir_exchange_queue_tell(struct weir_exchange *x, uint64_t now_ns);

/* Wakes the peer. */
int weir_exchange_queue_wake(struct weir_exchange *x);

/* Tells the peer that its end was taken. */
int weir_exchange_queue_heard(struct weir_exchange *x);

/* A write of nothing: fails if the peer is gone. */
int weir_exchange_queue_probe(struct weir_exchange *x);

/*
 * Immediate mode: gives back what is to be given back; and has it told that all was written. Some of
 * it waits for the completions of what is under way: so they come after the completions are taken.
 */
int weir_exchange_queue_gives(struct weir_exchange *x);
int weir_exchange_queue_mark(struct weir_exchange *x);

/* complete.c: takes completions, and does what they say. */
int weir_exchange_queue_poll(struct weir_exchange *x);

/* It has ended, because of @status. Return: the status that counts. */
int weir_exchange_fail(struct weir_exchange *x, int status);

/* take.c: a slot of the mirror is full. Return: 0; -EPROTO. */
int weir_exchange_arrive(struct weir_exchange *x, uint32_t slot);

/* The peer's last word is next, behind all that it has put, and was not heard. */
bool weir_exchange_has_end(const struct weir_exchange *x);

/* It is heard: the peer is told, and whoever takes finds that there is no more. */
void weir_exchange_hear_end(struct weir_exchange *x);

/* wait.c */

typedef bool weir_exchange_ready_fn(const struct weir_exchange *x);

/**
 * weir_exchange_wait() - until @is_ready says so
 * @want: WEIR_EXCHANGE_NEWS or _ROOM: what has to come for that
 *
 * Return: 0; -EAGAIN, -ETIMEDOUT; or @x->status.
 */
int weir_exchange_wait(struct weir_exchange *x, weir_exchange_ready_fn *is_ready, unsigned int want,
		       uint64_t timeout_ns);

/* Takes what events there are, without waiting: if the peer has left, @x->status says so. */
void weir_exchange_attend(struct weir_exchange *x);

/*
 * Of who hears of nothing for long: the peer may have vanished without a word, or be busy with what it gives
 * back little of. If it is gone, what is posted here fails.
 */
void weir_exchange_inquire(struct weir_exchange *x);

/* look.c */

/* Whether the last slot that is being sent is to tell of all that are not shown: the peer waits. */
bool weir_exchange_is_to_tell(struct weir_exchange *x, uint64_t now_ns);

/* It does. */
void weir_exchange_tells(struct weir_exchange *x, uint64_t now_ns);

/* Tells of all that was put and is not shown, if the peer waits. Return: whether it did. */
bool weir_exchange_tell(struct weir_exchange *x, uint64_t now_ns);

/* Whether slots that are being sent are to be followed by a look. */
bool weir_exchange_look_is_due(const struct weir_exchange *x, uint64_t now_ns);

/* Looks if that is due for @want, or anything was sent that is not known to have arrived. */
int weir_exchange_look(struct weir_exchange *x, unsigned int want, uint64_t now_ns);

/* What was put and is not known to have arrived, or cannot be found, has to be looked for, for @want. */
bool weir_exchange_owes_look(const struct weir_exchange *x, unsigned int want);

/* Asks the peer for a sign when there is @want, unless it was and gave none, and looks. */
int weir_exchange_ring(struct weir_exchange *x, unsigned int want);

/* As weir_look_has_asked(): and the completion of a look would wake who sleeps on this queue. */
bool weir_exchange_has_asked(const struct weir_exchange *x, unsigned int want);

/* Bits were flipped: wakes the peer if it sleeps for that. */
int weir_exchange_answer(struct weir_exchange *x, unsigned int what);

/* This end has nothing left to do but wait: wakes the peer if it sleeps for room, be it ever so little. */
int weir_exchange_concede(struct weir_exchange *x);

#endif
