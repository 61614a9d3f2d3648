/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A queue pair.
 *
 * Three locks keep posting from waiting for a copy:
 *
 * - post_lock: appending to the send queue;
 * - the receive queue's lock: posting and polling receives;
 * - lock: the rest, such as the state and the remote queue pair. Its holder executes the send
 *   queue, one thread at a time: the engine or a posting thread. The lock is free while the kernel
 *   copies, which may last for ever; sq.is_copying then keeps others from the send queue.
 *
 * Completions are polled under cq->lock, which comes before all three. The receive queue's lock
 * comes last.
 */
#ifndef WEIR_SOFTNIC_QP_QP_H
#define WEIR_SOFTNIC_QP_QP_H

#include <pthread.h>

#include "flush.h"
#include "softnic/verbs/async.h"
#include "softnic/verbs/ah.h"
#include "softnic/cq/cq.h"
#include "softnic/shm/guard.h"
#include "softnic/loop/loop.h"
#include "softnic/verbs/mr.h"
#include "softnic/shm/peer.h"
#include "softnic/rq/recv.h"
#include "softnic/rq/tray.h"
#include "softnic/shm/shared.h"

struct mcast_attachment;
struct wr_builder;
struct mcast_fanout;
struct far;
struct shm_client;
struct xrcd;

/* Arguments of IBV_WR_BIND_MW; the new key is the WR's rkey. */
struct mw_bind_args {
	uint32_t type; /* enum ibv_mw_type */
	uint32_t region; /* key of the region, or 0 */
	uint32_t access;
	uint64_t addr, length; /* address as in WRs; length 0 binds to nothing */
};

static inline bool wr_is_send(enum ibv_wr_opcode op)
{
	return op == IBV_WR_SEND || op == IBV_WR_SEND_WITH_IMM || op == IBV_WR_SEND_WITH_INV;
}

/* Does the WR need no remote queue pair? */
static inline bool wr_is_local(enum ibv_wr_opcode op)
{
	return op == IBV_WR_BIND_MW || op == IBV_WR_LOCAL_INV;
}

/* A send WR, from post to poll. */
struct send_wqe {
	uint64_t wr_id;
	union {
		struct {
			uint64_t remote_addr;
			union {
				struct {
					uint64_t compare_add, swap;
				};
				uint64_t value; /* of an inline atomic write */
				struct mw_bind_args bind;
			};
			uint32_t rkey;
		};
		struct {
			uint32_t qpn, qkey;
		} ud;
	};
	uint32_t length;
	uint32_t imm; /* or the key to invalidate */
	uint32_t srqn; /* XRC */
	uint8_t opcode; /* enum ibv_wr_opcode */
	uint8_t num_sge;
	uint16_t flags; /* enum ibv_send_flags; SIGNALED if the queue signals all */
	uint32_t status; /* enum ibv_wc_status, once done */
	uint64_t done_ns; /* time of completion, if the CQ is stamped */
};

/* polled <= done <= tail, modulo 2^32; tail - polled <= size. */
struct send_queue {
	struct send_wqe *wqes;
	struct ibv_sge *sges; /* max_sge per WQE */
	uint8_t *inlined; /* max_inline bytes per WQE */
	struct av *avs; /* UD only */
	struct mcast_fanout *fanout; /* UD only */
	uint32_t size; /* a power of two */
	uint32_t max_sge, max_inline;
	uint32_t tail; /* posted */
	uint32_t done; /* executed */
	uint32_t polled; /* taken by ibv_poll_cq() */

	/* Progress of the WR at @done. */
	uint32_t offset; /* bytes moved */
	struct rq_receive receive; /* taken from the remote receive queue */
	bool has_receive;
	bool is_in_tray; /* the message is in the tray of @receive */
	struct piece_sender {
		bool is_out; /* in the tray of @receive, at @offset of the message */
		bool has_answer, is_refused;
	} piece;
	uint64_t give_up_ns; /* when the transport's retries are used up; 0: no retry yet */
	uint64_t again_ns; /* delay before the next attempt */
	uint32_t rnr_left;
	bool rnr_begun;
	bool promised; /* a cq_promise() to the pollers of the send CQ is open */
	bool waiting; /* until the timer expires, no step runs */
	bool asks; /* request the remote queue pair after unlocking qp->lock */
	bool faults_drawn; /* fault.c has drawn the WR's faults */
	bool invalidates; /* waiting until the peer has left its guard */
	struct copy_guard_walk leaving;
	/*
	 * The kernel copies for the WR, and qp->lock is free. Meanwhile no other thread executes,
	 * completes or flushes a WR, or unmaps a remote queue pair.
	 */
	bool is_copying;
	bool drops; /* after the copy: the remote queue pairs of processes that have ended */
	uint32_t fails_with; /* after the copy, unless the WR is done */
};

/* A remote queue pair; mapped once its process has answered. */
struct remote_qp {
	uint32_t qpn;
	struct remote_qp *next; /* UD: with the same hash */
	bool is_refused; /* no such queue pair; the waiting WR fails or is dropped */
	bool is_gated; /* exists, but admits us later: see gate.h */
	bool is_mute; /* no answer in time: drop datagrams until an answer comes */
	bool was_requested_again; /* because the first process asked has ended */
	struct copy_guard guard; /* our guard in @shared */
	struct shm_peer *peer;
	struct shared_qp *shared; /* NULL until mapped */
	size_t size;
	struct rq rq; /* its receive queue, in @shared or in those of an SRQ */
	struct remote_srq {
		void *ring, *buffers;
		size_t ring_size, buffers_size;
	} srq;
	struct arrivals arrivals;
	struct trays trays;
	struct shared_cq *cq; /* its receive CQ */
	struct waker *waker; /* of the channel of @cq, or NULL */
	struct cq *own; /* @cq, if it is in this process */
};

/* The shared memory of our queue pair, mapped by the peer. */
struct qp_segment {
	struct shared_qp *qp;
	struct copy_guards guards;
	struct trays trays;
	size_t size;
	int fd;
};

/* The gate through which the peer reaches us: see gate.h. */
struct qp_gate {
	bool is_present; /* the program opens it; else it is open */
	bool is_open;
	uint64_t question; /* the peer's, to be answered again when the gate opens */
	uint32_t taken, answer; /* number of the last message taken, and our answer */
};

/* Sending to the gate of the peer. */
struct gate_sender {
	uint32_t number; /* of the last message sent */
	bool is_out; /* that message is the WR at the head of the send queue */
	bool awaits_any; /* answer; else only one that the message needs no further attempt */
	bool has_answer;
	uint32_t answer;
	uint8_t rnr_timer; /* of the last answer that found no receive */
	bool asks; /* whether the gate is open, for a WR that fails if not */
	bool is_told; /* that it is closed, after it has asked */
};

/* State of fault.c for a queue pair and for the WR at the head of its send queue. */
struct qp_faults {
	uint32_t number; /* in order of creation */
	uint64_t ops; /* begun so far */
	uint64_t settings, ops_at_setting;
	uint64_t begin_ns; /* the WR begins no earlier */
	uint32_t rnr; /* attempts left that find no receive */
	bool fails;
};

enum { REMOTE_HASHES = 64 };

struct qp {
	union {
		struct ibv_qp ibv;
		struct ibv_qp_ex ex; /* if there is a wr_builder */
		struct flush_qp_ex flush_ex;
	};
	struct wr_builder *wr_builder;
	pthread_mutex_t post_lock, lock;
	struct ibv_qp_attr attr; /* as set by ibv_modify_qp() */
	struct ibv_qp_init_attr init;
	enum ibv_qp_state state; /* written under lock */
	struct send_queue sq;
	struct recv_queue *rq; /* own_rq or an SRQ's */
	struct recv_queue own_rq;
	struct recv_arrivals arrivals;
	struct far *far; /* reaches other hosts; NULL: this host only */
	struct remote_qp remote; /* of a connected queue pair, near */
	struct remote_qp **remotes; /* UD, and XRC's SRQs: REMOTE_HASHES lists */
	struct xrcd *xrcd; /* of a receiving queue pair or an SRQ's end */
	struct qp *opened; /* of a handle by ibv_open_qp(); else NULL */
	uint32_t handles; /* opened so; nic.lock */
	bool is_closed; /* by the creator; handles keep it; nic.lock */
	struct remote_qp *to; /* destination of the WR being executed */
	struct mcast_attachment *groups; /* UD; nic.lock */
	bool blocks_own; /* its own multicast datagrams do not loop back */
	struct qp_faults faults;
	uint64_t links; /* connections ended so far; an answer for an older one is late */
	struct softnic_work work; /* executes the send queue */
	struct softnic_timer timer; /* ends a wait of the send queue */
	struct softnic_timer quiet; /* polls until the peer has left our buffers */
	struct copy_guard_walk leaving; /* begun at the error */
	struct cq_source sends, recvs; /* polled by our CQs */

	struct qp_segment segment;
	struct shm_client *client; /* the client connected to it; nic.lock */
	struct qp_gate gate; /* changes under both nic.lock and lock, or before connecting */
	struct gate_sender gate_sender;
	uint32_t users; /* nic.lock */
	struct async_subject events;
};

static inline struct qp *to_qp(struct ibv_qp *qp)
{
	return (struct qp *)qp;
}

static inline bool qp_is_reliable(const struct qp *qp)
{
	return qp->ibv.qp_type == IBV_QPT_RC || qp->ibv.qp_type == IBV_QPT_XRC_SEND ||
	       qp->ibv.qp_type == IBV_QPT_XRC_RECV;
}

/* Does each WR name an SRQ? */
static inline bool qp_names_srqs(const struct qp *qp)
{
	return qp->ibv.qp_type == IBV_QPT_XRC_SEND;
}

static inline bool qp_is_datagram(const struct qp *qp)
{
	return qp->ibv.qp_type == IBV_QPT_UD;
}

/* The end of an XRC SRQ takes messages as a datagram queue pair does: see xrc.c. */
static inline bool qp_is_srq_end(const struct qp *qp)
{
	return qp_is_datagram(qp) && qp->xrcd;
}

/* If so, its number may name a new queue pair. */
static inline bool remote_qp_is_gone(const struct remote_qp *r)
{
	return r->shared && load_acquire(&r->shared->state) == SHARED_QP_GONE;
}

/* Is the remote queue pair set, or, for UD, may datagrams arrive? */
static inline bool qp_is_connected(const struct qp *qp)
{
	enum ibv_qp_state s = load_acquire(&qp->state);

	return s == IBV_QPS_RTR || s == IBV_QPS_RTS || s == IBV_QPS_SQD || s == IBV_QPS_SQE;
}

/** qp_set_state() - change the state, also in the list for other processes; qp->lock held */
void qp_set_state(struct qp *qp, enum ibv_qp_state state);

/** qp_list() - enter the queue pair's present attributes into the list for other processes */
void qp_list(const struct qp *qp);

/** qp_create() - ibv_create_qp() for softnic itself, bypassing interposers of the exported one */
struct ibv_qp *qp_create(struct ibv_pd *pd, struct ibv_qp_init_attr *init);

/** qp_create_in() - the same, in an XRC domain, or in none (NULL) */
struct ibv_qp *qp_create_in(struct ibv_pd *pd, struct ibv_qp_init_attr *init, struct xrcd *xrcd);

/** qp_segment_create() - create a segment for a queue pair, in the reset state; 0 or -errno */
int qp_segment_create(const struct qp *qp, struct qp_segment *segment);
/** qp_segment_use() - switch to a new segment; no thread polls or posts meanwhile */
void qp_segment_use(struct qp *qp, const struct qp_segment *segment);
void qp_segment_destroy(struct qp_segment *segment);

/**
 * qp_wait_for_copies() - wait for all copies that may rely on the state before the call
 *
 * @lkey: wait for copies of our own send queue with this key only; 0: for all
 *
 * Our own send queue copies through our memory regions, the peer through our receive queue and
 * regions. A peer that copies for two seconds is disconnected. Our own copy may wait for a page of
 * the peer for ever.
 *
 * Context: An application's thread, no locks held.
 */
void qp_wait_for_copies(struct qp *qp, uint32_t lkey);

/**
 * qp_error() - move the queue pair to the error state
 *
 * The send queue is flushed now, the receive queue as soon as the peer has left our buffers.
 *
 * Context: qp->lock held. Does nothing in the error and reset states.
 */
void qp_error(struct qp *qp);

/** qp_peer_died() - fail as for a peer whose process has ended; qp->lock held */
void qp_peer_died(struct qp *qp);

/** qp_error_event() - qp_error(), and raise an asynchronous event */
void qp_error_event(struct qp *qp, enum ibv_event_type event);

/** qp_drained() - in SQD, the last WR in flight has ended; qp->lock held */
void qp_drained(struct qp *qp);

/* Events, all on the engine thread. All but remote_qp_resolved() need nic.lock held. */

/**
 * remote_qp_resolved() - a peer answered a request for its queue pair
 * @fds: the function takes the descriptors it needs
 *
 * Return: 0, or -EPROTO if the answer is malformed.
 */
int remote_qp_resolved(struct shm_peer *peer, const struct shm_msg *m, int *fds);
/** remote_qp_gone() - a destination of our datagrams was destroyed: unmap it */
void remote_qp_gone(struct shm_peer *peer, const struct shm_msg *m);
/** qp_peer_ended() - a process that our queue pairs send to has ended */
void qp_peer_ended(struct shm_peer *peer);
/** qp_client_ended() - a process that sends to our queue pairs, from @slot, has ended */
void qp_client_ended(struct shm_client *client, uint32_t slot);
/** qp_peer_reported_error() - our side refused a request of the peer; value of MSG_QP_ERROR */
void qp_peer_reported_error(struct qp *qp, uint64_t value);

/* remote_qp.c: finding the remote queue pair. */

/** remote_qp_get() - find or add a remote queue pair; NULL if out of memory; qp->lock held */
struct remote_qp *remote_qp_get(struct qp *qp, uint32_t qpn);
/** remote_qp_request() - request the awaited remote queue pairs; nic.lock and qp->lock held */
void remote_qp_request(struct qp *qp);
/**
 * remote_qp_request_again() - ask the next process in the slot after the first one has ended
 *
 * For connected queue pairs. We may learn late that the process has ended. The number may then
 * belong to the process that has claimed the slot since. That process is asked once.
 *
 * Context: nic.lock and qp->lock held.
 * Return: false if the slot is free, or the remote queue pair was found or asked for twice.
 */
bool remote_qp_request_again(struct qp *qp);
/**
 * remote_qp_drop_peer() - unmap the remote queue pairs of a process that has ended
 *
 * Context: nic.lock and qp->lock held.
 * Return: true if the send queue still waited for one: the caller resumes the send queue.
 */
bool remote_qp_drop_peer(struct qp *qp, struct shm_peer *peer);

/** remote_qp_drop_listed() - the same for SRQs and destinations of datagrams only */
bool remote_qp_drop_listed(struct qp *qp, struct shm_peer *peer);

/** remote_qp_drop_late() - the same, after a copy, for all processes that have ended meanwhile */
bool remote_qp_drop_late(struct qp *qp);
/**
 * remote_qp_drop_all() - unmap all remote queue pairs, and tell the peers
 *
 * The connected peer is told, and each process that sends datagrams to this queue pair.
 *
 * Context: nic.lock and qp->lock held.
 */
void remote_qp_drop_all(struct qp *qp);

#endif
