/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A queue pair.
 *
 * Three locks, so that posting never waits for a copy: post_lock for who appends to the
 * send queue, the receive queue's for who posts or polls receives, and lock for everything
 * else: the state, the link, and executing the send queue, which one thread does at a
 * time, the engine or whoever posts. Completions are polled under cq->lock, which comes
 * before all three; the receive queue's lock comes after.
 */
#ifndef WEIR_SOFTNIC_QP_QP_H
#define WEIR_SOFTNIC_QP_QP_H

#include <pthread.h>

#include "softnic/verbs/async.h"
#include "softnic/verbs/ah.h"
#include "softnic/cq/cq.h"
#include "softnic/shm/guard.h"
#include "softnic/loop/loop.h"
#include "softnic/verbs/mr.h"
#include "softnic/shm/peer.h"
#include "softnic/rq/recv.h"
#include "softnic/shm/shared.h"

struct mcast_attachment;
struct wr_builder;
struct mcast_fanout;
struct shm_client;

/* What IBV_WR_BIND_MW asks for; the new key is the work request's rkey. */
struct mw_bind_args {
	uint32_t type; /* enum ibv_mw_type */
	uint32_t region; /* key of the region, or 0 */
	uint32_t access;
	uint64_t addr, length; /* as work requests say it; length 0: to nothing */
};

static inline bool wr_is_send(enum ibv_wr_opcode op)
{
	return op == IBV_WR_SEND || op == IBV_WR_SEND_WITH_IMM || op == IBV_WR_SEND_WITH_INV;
}

/* Nothing for the other end to do. */
static inline bool wr_is_local(enum ibv_wr_opcode op)
{
	return op == IBV_WR_BIND_MW || op == IBV_WR_LOCAL_INV;
}

/* A send work request, from post to poll. */
struct send_wqe {
	uint64_t wr_id;
	union {
		struct {
			uint64_t remote_addr;
			union {
				struct {
					uint64_t compare_add, swap;
				};
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
	uint8_t opcode; /* enum ibv_wr_opcode */
	uint8_t num_sge;
	uint16_t flags; /* enum ibv_send_flags; SIGNALED if the queue signals all */
	uint32_t status; /* enum ibv_wc_status, once done */
	uint64_t done_ns; /* when, if the completion queue is stamped */
};

/* polled <= done <= tail, modulo 2^32; tail - polled <= size. */
struct send_queue {
	struct send_wqe *wqes;
	struct ibv_sge *sges; /* max_sge each */
	uint8_t *inlined; /* max_inline each */
	struct av *avs; /* of datagrams */
	struct mcast_fanout *fanout; /* the same */
	uint32_t size; /* a power of two */
	uint32_t max_sge, max_inline;
	uint32_t tail; /* posted */
	uint32_t done; /* executed */
	uint32_t polled; /* taken by ibv_poll_cq() */

	/* The work request at done, while it is executed. */
	uint32_t offset; /* bytes moved */
	struct rq_receive receive; /* the other end's, if taken */
	bool has_receive;
	uint64_t give_up_ns; /* when the transport's retries are used up; 0: not yet begun */
	uint64_t again_ns; /* how long to wait before the next attempt */
	uint32_t rnr_left;
	bool rnr_begun;
	bool promised; /* to whoever polls the send CQ */
	bool waiting; /* for the timer: leave it alone */
	bool asks; /* for the other end, as soon as qp->lock is free */
	bool faults_drawn; /* its faults were drawn */
	bool invalidates; /* until the peer has left */
	struct copy_guard_walk leaving;
};

/* Where another end is, once its process told us. */
struct remote_qp {
	uint32_t qpn;
	struct remote_qp *next; /* of a datagram queue pair's, with the same hash */
	bool is_refused; /* nobody there; for the work request that waits */
	bool is_mute; /* no answer in time: drop until there is one */
	bool was_requested_again; /* as the process that was asked first has ended */
	struct copy_guard guard; /* ours, in shared */
	struct shm_peer *peer;
	struct shared_qp *shared; /* NULL until then */
	size_t size;
	struct rq rq; /* its receive queue; in shared, or an SRQ's: */
	void *srq;
	size_t srq_size;
	struct arrivals arrivals;
	struct shared_cq *cq; /* its receive CQ */
	struct waker *waker; /* to the channel that has, or NULL */
	struct cq *own; /* if it is in this process, the same CQ */
};

/* What of ours the peer maps. */
struct qp_segment {
	struct shared_qp *qp;
	struct copy_guards guards;
	size_t size;
	int fd;
};

/* What fault.c remembers of a queue pair, and of the operation at the head of its send queue. */
struct qp_faults {
	uint32_t number; /* in the order they were made */
	uint64_t ops; /* begun so far */
	uint64_t epoch, ops_at_epoch;
	uint64_t begin_ns; /* not earlier */
	uint32_t rnr; /* tries that find no receive */
	bool fails;
};

enum { REMOTE_HASHES = 64 };

struct qp {
	union {
		struct ibv_qp ibv;
		struct ibv_qp_ex ex; /* if there is a wr_builder */
	};
	struct wr_builder *wr_builder;
	pthread_mutex_t post_lock, lock;
	struct ibv_qp_attr attr; /* as set by ibv_modify_qp() */
	struct ibv_qp_init_attr init;
	enum ibv_qp_state state; /* written under lock */
	struct send_queue sq;
	struct recv_queue *rq; /* its own or an SRQ's */
	struct recv_queue own_rq;
	struct recv_arrivals arrivals;
	struct remote_qp remote; /* of RC and UC */
	struct remote_qp **remotes; /* of UD: REMOTE_HASHES lists */
	struct remote_qp *to; /* where the work request being executed goes */
	struct mcast_attachment *groups; /* of UD; nic.lock */
	bool blocks_own; /* what it sends to a group that it is in */
	struct qp_faults faults;
	uint64_t links; /* ended so far: late answers belong to them */
	struct softnic_work work; /* executes the send queue */
	struct softnic_timer timer; /* ends a wait of the send queue */
	struct softnic_timer quiet; /* looks whether the peer has left our buffers */
	struct copy_guard_walk leaving; /* since the error */
	struct cq_source sends, recvs; /* where our completion queues find us */

	struct qp_segment segment;
	struct shm_client *client; /* who has it; nic.lock */
	uint32_t users; /* nic.lock */
	struct async_subject events;
};

static inline struct qp *to_qp(struct ibv_qp *qp)
{
	return (struct qp *)qp;
}

static inline bool qp_is_reliable(const struct qp *qp)
{
	return qp->ibv.qp_type == IBV_QPT_RC;
}

static inline bool qp_is_datagram(const struct qp *qp)
{
	return qp->ibv.qp_type == IBV_QPT_UD;
}

/* Then there may be another by its number. */
static inline bool remote_qp_is_gone(const struct remote_qp *r)
{
	return r->shared && load_acquire(&r->shared->state) == SHARED_QP_GONE;
}

/* Does it know whom it is connected to, or may datagrams come? */
static inline bool qp_is_connected(const struct qp *qp)
{
	enum ibv_qp_state s = load_acquire(&qp->state);

	return s == IBV_QPS_RTR || s == IBV_QPS_RTS || s == IBV_QPS_SQD || s == IBV_QPS_SQE;
}

/** qp_create() - ibv_create_qp(), for softnic's own use: what stands before the exported one sees none */
struct ibv_qp *qp_create(struct ibv_pd *pd, struct ibv_qp_init_attr *init);

/** qp_segment_create() - one that suits a queue pair, in the reset state. 0 or -errno. */
int qp_segment_create(const struct qp *qp, struct qp_segment *segment);
/** qp_segment_use() - from now on this one. Nobody polls or posts meanwhile. */
void qp_segment_use(struct qp *qp, const struct qp_segment *segment);
void qp_segment_destroy(struct qp_segment *segment);

/**
 * qp_wait_for_copies() - nobody copies any more by what was true before the call
 *
 * Neither our own send queue by our memory regions, nor the peer by our receive queue
 * and our regions. A peer that keeps us waiting for two seconds is cut off.
 *
 * Context: an application's thread, no locks held.
 */
void qp_wait_for_copies(struct qp *qp);

/**
 * qp_error() - the queue pair goes to the error state
 *
 * What is in the send queue is flushed; what is in the receive queue will be as soon as
 * the peer has left our buffers.
 *
 * Context: qp->lock held. Does nothing in the error and reset states.
 */
void qp_error(struct qp *qp);

/** qp_error_event() - qp_error(), and tell the program through its context */
void qp_error_event(struct qp *qp, enum ibv_event_type event);

/** qp_drained() - in SQD, nothing is under way any more. qp->lock held. */
void qp_drained(struct qp *qp);

/* Events. All on the engine thread; with nic.lock held, but for remote_qp_resolved(). */

/**
 * remote_qp_resolved() - the answer to a question of ours; takes the descriptors it wants
 *
 * Return: 0, or -EPROTO if it is no answer that a softnic would give.
 */
int remote_qp_resolved(struct shm_peer *peer, const struct shm_msg *m, int *fds);
/** remote_qp_gone() - what datagrams of ours were sent to is no more: let go of it */
void remote_qp_gone(struct shm_peer *peer, const struct shm_msg *m);
/** qp_peer_ended() - a process that ours talk to has ended */
void qp_peer_ended(struct shm_peer *peer);
/** qp_client_ended() - a process that talks to ours, from that slot, has ended */
void qp_client_ended(struct shm_client *client, uint32_t slot);
/** qp_peer_reported_error() - a request of the peer was refused: value of MSG_QP_ERROR */
void qp_peer_reported_error(struct qp *qp, uint64_t value);

/* link.c: finding the other end. */

/** remote_qp_get() - the other end of that number, NULL if out of memory. qp->lock held. */
struct remote_qp *remote_qp_get(struct qp *qp, uint32_t qpn);
/** remote_qp_request() - ask for the other ends that are awaited. nic.lock, qp->lock held. */
void remote_qp_request(struct qp *qp);
/**
 * remote_qp_request_again() - the process that a connected queue pair's other end was asked of has ended
 *
 * It may have ended long before, and we were told only now: then the number is of a queue pair of
 * whoever has the slot since. That one is asked, once.
 *
 * Context: nic.lock and qp->lock held.
 * Return: false if there is nobody to ask, or there was an answer already.
 */
bool remote_qp_request_again(struct qp *qp);
/**
 * remote_qp_drop_peer() - forget those of a process that has ended
 *
 * Context: nic.lock and qp->lock held.
 * Return: true if any of them was still waited for; it is refused now.
 */
bool remote_qp_drop_peer(struct qp *qp, struct shm_peer *peer);
/** remote_qp_drop_all() - forget all, and tell whom it talked to, and who to it by datagrams. nic.lock and qp->lock held. */
void remote_qp_drop_all(struct qp *qp);

#endif
